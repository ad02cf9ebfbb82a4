"""What a run gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nkic.base.diagnostics import Diagnostic
from nkic.neff.records import InstructionRecord
from nkic.simulate.printing import Printed
from nkic.simulate.tracing.replay import Recorded


@dataclass(frozen=True)
class EngineUse:
    """How much an engine did: time busy, and instructions executed."""

    busy_ns: float
    instructions: int


class Busy(NamedTuple):
    """When an instruction held its engine, or a transfer was under way, in picoseconds. `stream`
    as "core0.vector" or "core0.dma3".
    """

    stream: str
    record: InstructionRecord
    start: int
    end: int


@dataclass(frozen=True)
class Result:
    """`outputs` in the storage type of their element types (bfloat16 as uint16), by name.

    `time_ns` is simulated time from the first issue to the last completion; `cycles` the same
    at the target's base clock. `printed` is what the program printed, in order, until a limit;
    `prints_left_out` more came after it. `engines` by core and engine, as "core0.vector".
    `bounds`, if they were asked for, say how far each element of an output may be from exact
    arithmetic, and `uncovered` which instructions left something unbounded, by name and place.
    `recorded`, if it was asked for, is what happened, and can tell how long the run would have
    taken if something had been otherwise.
    `timeline` holds the times of the first instructions, if they were asked for, as they started.
    `remarks` are warnings of what a device would do otherwise, and of outputs that were not
    written; `base.levels` says which of them are errors.
    """

    outputs: Mapping[str, NDArray[np.generic]]
    time_ns: float
    cycles: int
    engines: Mapping[str, EngineUse]
    dma_bytes: int
    instructions: int
    printed: tuple[Printed, ...] = ()
    prints_left_out: int = 0
    timeline: tuple[Busy, ...] = ()
    bounds: Mapping[str, NDArray[np.float64]] | None = None
    uncovered: Mapping[tuple[str, int], int] = field(default_factory=dict)
    remarks: tuple[Diagnostic, ...] = ()
    recorded: Recorded | None = None
