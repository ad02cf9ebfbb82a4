"""Hypothetical changes to a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nkic.machine.timing import Timing
from nkic.trace.events import Event


@dataclass(frozen=True)
class Change:
    """A change under which a run is simulated again.

    `retimed` returns an event's timing, given its number, the event, and its original timing. With
    `tables` off, the scalar engine has all activation tables at once. `wires` replaces the
    program's semaphores by pairs of events (signalling, waiting).
    """

    retimed: Callable[[int, Event, Timing], Timing] | None = None
    tables: bool = True
    wires: Sequence[tuple[int, int]] | None = None
