"""All timing figures, by name."""

from __future__ import annotations

from nkic.machine.clock import engines, others, transfers
from nkic.machine.clock.figures import Parameter

TABLE: dict[str, Parameter] = {
    row.name: row
    for row in (
        *(*engines.CLOCKS, *engines.ISSUE, *engines.VECTOR, *engines.SCALAR),
        *(*others.GPSIMD, *others.TENSOR, *others.REGISTERS),
        *(*transfers.DMA, *transfers.LAUNCH),
    )
}


def defaults(generation: int) -> dict[str, float]:
    """Return the value of every figure for a generation, by name."""
    return {name: row.of(generation).value for name, row in TABLE.items()}
