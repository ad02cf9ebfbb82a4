"""The likely error of a simulated time: that of kernels of the same kind, where published times
could be compared (docs/timing.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from nkic.machine.engines import SHORT_NAMES, Engine

BUSY = 0.75  # share of the time from which an engine is mostly busy


@dataclass(frozen=True)
class Trust:
    """The kind of a kernel, by its busiest engine, and the likely error of its time in percent;
    `checked` names the comparison.
    """

    kind: str
    percent: int
    checked: str


TENSOR = Trust("PE mostly busy", 5, "3 published kernels, off by 0.0 to 1.1 %")
TRANSFERS = Trust(
    "DMA or SP mostly busy",
    20,
    "1 published kernel, off by 6 %; its profile had shown which engine triggers",
)
ELEMENTWISE = Trust(
    "DVE, ACT or POOL mostly busy",
    30,
    "20 published kernels that a former compiler transformed, off by 1 to 14 %",
)
MIXED = Trust(
    "no engine mostly busy",
    40,
    "no published kernel but 2 to which figures were fitted, off by 1 to 2 %",
)
_KINDS = {Engine.TENSOR: TENSOR, Engine.DMA: TRANSFERS}


def trust_of(shares: Mapping[Engine, float]) -> Trust:
    """Return the trust for these busy shares of the engines."""
    busiest = max(shares, key=lambda engine: shares[engine], default=None)
    if busiest is None or shares[busiest] < BUSY:
        return MIXED
    return _KINDS.get(busiest, ELEMENTWISE if SHORT_NAMES[busiest] != "SP" else TRANSFERS)
