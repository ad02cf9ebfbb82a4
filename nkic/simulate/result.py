"""The result of a run."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nkic.artifact.events import Change, Trace
from nkic.artifact.records import InstructionRecord
from nkic.base.diagnostics import Diagnostic
from nkic.simulate.machine import Machine, Rank
from nkic.simulate.outcome import Printed, RunOptions
from nkic.simulate.plans import EngineState, Registers, Rendezvous
from nkic.simulate.recorder import Recorder
from nkic.simulate.streams import Item, Runner

# ---- Replays of a recorded run without values, for its time alone -------------------------------
# A replay uses the same event loop and the same rules of timing. Only the durations of items or
# the dependences between them are changed, so the result is computed rather than estimated.

UNCHANGED = Change()


@dataclass(frozen=True)
class Recorded:
    """A recorded run of one rank, which can be replayed under changed conditions.

    `items` are those of its events, without their steps. `can_repeat` tells that every event was
    kept, and that no other rank took part.
    """

    trace: Trace
    items: Sequence[Item]
    can_repeat: bool

    def again(self, change: Change = UNCHANGED) -> int:
        executable = self.trace.executable
        rank, options = Rank([*self._runners(change)]), RunOptions(check_init=False)
        machine = Machine(executable, [rank], options, self.trace.target)
        if change.wires is not None:
            machine.tokens = [defaultdict(deque) for _ in machine.tokens]  # type: ignore[misc]
        return machine.run()

    def _runners(self, change: Change) -> list[_ReplayedStream]:
        executable = self.trace.executable
        target, cores = self.trace.target, max(1, executable.cores)
        runners = [
            _ReplayedStream(i, stream, [], EngineState(Registers([]), stream.core), target, cores)
            for i, stream in enumerate(change.streams or self.trace.streams)
        ]
        waits, signals = _dependences(change.wires, len(self.items))
        for number, (event, item) in enumerate(zip(self.trace.events, self.items, strict=True)):
            timing = item.timing
            if change.retimed is not None:
                timing = change.retimed(number, event, timing)
            changed = item
            if timing is not item.timing or change.wires is not None or not change.tables:
                changed = _without_step(item)
                changed.timing = timing
            if not change.tables:
                changed.table = ""
            if change.wires is not None:
                changed.waits, changed.signals = tuple(waits[number]), tuple(signals[number])
            runners[change.moved.get(number, event.stream)].items.append(changed)
        return runners


def recorded(recorder: Recorder, end: int) -> Recorded:
    """Return what a recorder has kept, without references to the memory of the run."""
    empty = {id(item): _without_step(item) for item in recorder.items}
    groups = (item.rendezvous.group for item in recorder.items if item.rendezvous is not None)
    alone = not any(group is not None for group in groups)
    items = [empty[id(item)] for item in recorder.items]
    return Recorded(recorder.trace(end), items, recorder.complete and alone)


class _ReplayedStream(Runner):
    """A stream of items in the order of execution, with loops unrolled."""

    __slots__ = ()

    def next(self) -> Any:
        done = self.next_index >= len(self.items)
        self.item = item = None if done else self.items[self.next_index]
        return item


def _without_step(item: Item) -> Item:
    copy = Item(item.record, None, item.timing, item.bytes)
    copy.follows = item.follows
    copy.table = item.table
    if item.is_rendezvous:
        copy.is_rendezvous = True
        copy.rendezvous = Rendezvous(lambda: None, lambda contributions: None)
    return copy


def _dependences(
    wires: Sequence[tuple[int, int]] | None, count: int
) -> tuple[list[list[tuple[int, int]]], list[list[int]]]:
    """Return the waits and the signals of each event, with one semaphore for each pair."""
    waits: list[list[tuple[int, int]]] = [[] for _ in range(count if wires is not None else 0)]
    signals: list[list[int]] = [[] for _ in range(count if wires is not None else 0)]
    for number, (signaller, waiter) in enumerate(wires or ()):
        signals[signaller].append(number)
        waits[waiter].append((number, 1))
    return waits, signals


# --------------------------------------------------------------------------------------------------


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
