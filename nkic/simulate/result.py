"""The result of a run."""

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
    """The work of an engine: time busy, and instructions executed."""

    busy_ns: float
    instructions: int


class Busy(NamedTuple):
    """The time in which an instruction held its engine or a transfer was in flight, in picoseconds.

    `stream` is named like "core0.vector" or "core0.dma3".
    """

    stream: str
    record: InstructionRecord
    start: int
    end: int


@dataclass(frozen=True)
class Result:
    """The result of a run. `outputs` are in the storage type of their element types, by name.

    The storage type of bfloat16 is uint16. `time_ns` is simulated time from the first issue to the
    last completion; `cycles` is the same at the target's base clock. `printed` is what the program
    printed, in order, up to a limit; `prints_left_out` counts the prints after it. `engines` is by
    core and engine, as "core0.vector". `bounds`, if requested, has each output element's maximum
    distance from exact arithmetic, and `uncovered` the instructions that left something unbounded,
    by name and place. `recorded`, if requested, is a record of the run that can tell how long the
    run would have taken under different conditions. `timeline` holds the times of the first
    instructions to start, if requested. `remarks` are warnings of differences on a device and of
    uninitialised outputs; `base.levels` says which of them are errors.
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
