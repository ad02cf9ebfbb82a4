"""Timing of DMA queues: when transfers are triggered and when their data move.

The event loop of a run and the compiler's estimate share this model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from nkic.machine.engines import Engine
from nkic.machine.timing import Timing, overlaps_commands

Key = tuple[int, Engine]  # a core, and one of its engines


class Timed(Protocol):
    """A stream of an engine or a queue, and its progress."""

    free: int
    triggered: int | None
    moved: int


class Rings:
    """The queues of all cores. `engines` are the engine streams, for engines that have one."""

    def __init__(self, cores: int, engines: Mapping[Key, Timed]) -> None:
        self.engines = engines
        self.dma_free = [0] * cores  # when the DMA engines can take another transfer
        self.commands: dict[Key, int] = {}  # when each engine ends its last trigger
        self.held: dict[Key, int] = {}  # time that engines were busy only with triggers

    def trigger(self, queue: Timed, core: int, timing: Timing, start: int) -> int:
        """Return when a transfer that could start at `start` is triggered.

        Engines handle triggers in the order in which transfers become ready, and are busy with
        each.
        """
        if queue.triggered is None:
            by, trigger = (core, timing.by), timing.trigger
            engine, free = self.engines.get(by), self.commands.get(by, 0)
            if engine is not None and not overlaps_commands(timing.by):
                free = max(free, engine.free)
            at = queue.triggered = start if start > free else free
            until = self.commands[by] = at + trigger
            if engine is not None and engine.free > at:
                trigger = max(0, until - engine.free)
            if engine is not None and until > engine.free:
                engine.free = until
            self.held[by] = self.held.get(by, 0) + trigger
        return queue.triggered

    def enqueue(self, queue: Timed, core: int, timing: Timing, start: int) -> None:
        """Add a transfer to its ring at `start`; the ring can then take another one.

        Its data move when the core's DMA engines are available, after the data of earlier transfers
        in the ring.
        """
        queue.triggered = None
        queue.free = start + timing.trigger
        if timing.pool:
            if self.dma_free[core] > start:
                start = self.dma_free[core]
            self.dma_free[core] = start + timing.pool
        queue.moved = (start if start > queue.moved else queue.moved) + timing.hold
