"""What could have been otherwise in a run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nkic.machine.timing import Timing
from nkic.trace.events import Event


@dataclass(frozen=True)
class Change:
    """`retimed` gives the time of an event from its number, itself and the time that it took.
    `tables` off: the scalar engine has every table at once. `wires`: who waits for whom, as pairs
    of events (signals, waits), in place of the program's semaphores.
    """

    retimed: Callable[[int, Event, Timing], Timing] | None = None
    tables: bool = True
    wires: Sequence[tuple[int, int]] | None = None
