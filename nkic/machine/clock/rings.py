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


class _Commander:
    """An engine of a core that triggers transfers, and its stream, if it has one."""

    __slots__ = ("held", "overlaps", "stream", "until")

    def __init__(self, engine: Engine, stream: Timed | None) -> None:
        self.stream = stream
        self.overlaps = overlaps_commands(engine)
        self.until = 0  # when it ends its last trigger
        self.held = 0  # time that it was busy only with triggers


class Rings:
    """The queues of all cores. `engines` are the engine streams, for engines that have one."""

    def __init__(self, cores: int, engines: Mapping[Key, Timed]) -> None:
        self.dma_free = [0] * cores  # when the DMA engines can take another transfer
        self.commanders = [
            {engine: _Commander(engine, engines.get((core, engine))) for engine in Engine}
            for core in range(cores)
        ]

    @property
    def held(self) -> dict[Key, int]:
        """The time that each engine was busy only with triggers, if it was."""
        return {
            (core, engine): commander.held
            for core, commanders in enumerate(self.commanders)
            for engine, commander in commanders.items()
            if commander.held
        }

    def trigger(self, queue: Timed, core: int, timing: Timing, start: int) -> int:
        """Return when a transfer that could start at `start` is triggered.

        Engines handle triggers in the order in which transfers become ready, and are busy with
        each.
        """
        if queue.triggered is None:
            by, trigger = self.commanders[core][timing.by], timing.trigger
            free, stream = by.until, by.stream
            if stream is not None and not by.overlaps and stream.free > free:
                free = stream.free
            at = queue.triggered = start if start > free else free
            until = by.until = at + trigger
            if stream is not None and stream.free > at:
                trigger = max(0, until - stream.free)
            if stream is not None and until > stream.free:
                stream.free = until
            by.held += trigger
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
