"""Replays of a recorded run without values, for its time alone.

A replay uses the same event loop and the same rules of timing. Only the durations of items or the
dependences between them are changed, so the result is computed rather than estimated.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nkic.machine.timing import Tables, Warmth
from nkic.simulate.decode import EngineState, Registers, Rendezvous
from nkic.simulate.machine import Machine
from nkic.simulate.options import RunOptions
from nkic.simulate.streams import Item, Runner
from nkic.simulate.tracing.recorder import Recorder
from nkic.trace import Change, Trace

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
        """Return the time of the run with that change, in picoseconds."""
        executable = self.trace.executable
        runners = self._runners(change)
        options, target = RunOptions(check_init=False), self.trace.target
        machine = Machine(executable, list(runners), [None], options, None, target)
        if change.wires is not None:
            machine.tokens = [defaultdict(deque) for _ in machine.tokens]  # type: ignore[misc]
        machine.run()
        return machine.end

    def _runners(self, change: Change) -> list[_ReplayedStream]:
        executable = self.trace.executable
        target, cores = self.trace.target, max(1, executable.cores)
        runners = [
            _ReplayedStream(
                i, stream, [], _state(stream.core), Tables(target), Warmth(target), cores
            )
            for i, stream in enumerate(self.trace.streams)
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
            runners[event.stream].items.append(changed)
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

    def current(self) -> Item | None:
        """Return the next item."""
        if self.next_index >= len(self.items):
            return None
        self.item = self.items[self.next_index]  # type: ignore[assignment]
        return self.item


def _state(core: int) -> EngineState:
    return EngineState(Registers([]), core)


def _without_step(item: Item) -> Item:
    """Return the item without its step."""
    copy = Item(item.record, None, item.timing, item.bytes)
    copy.follows = item.follows
    copy.table = item.table
    if item.is_rendezvous:
        copy.meet(Rendezvous(_nothing, _ignore))
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


def _nothing() -> None:
    """A rendezvous without contributions."""


def _ignore(brought: Any) -> None:
    """Accept nothing."""
