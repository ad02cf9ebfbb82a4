"""Checks that all cores of a program reach the same rendezvous in the same order.

The compiler checks programs, and the runner checks files that it does not trust. Both outline what
each core does and compare the outlines in lockstep, so that there is one rule. The trip count of a
loop bounded by a register is known only at run time; there, the runner reports a core that waits
forever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import Generic, NamedTuple, TypeVar

from nkic.machine.operands import Row, Violation

T = TypeVar("T")


class Stop(NamedTuple, Generic[T]):
    """An instruction that all cores run together."""

    item: T
    row: Row

    @property
    def name(self) -> str:
        """The name used in messages."""
        return self.row.name


class Round(NamedTuple, Generic[T]):
    """A device loop that contains stops; `trips` is None if a register determines it."""

    item: T
    trips: int | None
    body: Outline[T]

    @property
    def name(self) -> str:
        """The name used in messages."""
        return "a device loop"


Step = Stop[T] | Round[T]
Outline = tuple[Step[T], ...]


class Mismatch(NamedTuple, Generic[T]):
    """The first point where the cores diverge.

    `steps` is the next step of each core (None at its end), and `last` is the step before it in the
    same body. `violation` is set if a row's rule rejects the operands of the rendezvous.
    """

    steps: tuple[Step[T] | None, ...]
    last: tuple[Step[T] | None, ...] = ()
    violation: Violation | None = None

    @property
    def first(self) -> tuple[int, Step[T]]:
        """The first core with a step, and the step."""
        return next((core, step) for core, step in enumerate(self.steps) if step is not None)

    @property
    def without(self) -> int | None:
        """A core that has reached its end while another waits, if any."""
        return self.steps.index(None) if None in self.steps else None

    @property
    def text(self) -> str:
        """The error text, for a message at `first`."""
        if self.violation is not None:
            return self.violation.message
        core, step = self.first
        if self.without is not None:
            return (
                f"core {core} waits at {step.name} for core {self.without}, which has no more "
                "rendezvous"
            )
        steps = [step for step in self.steps if step is not None]
        if all(isinstance(step, Round) for step in steps):
            times = " and ".join(str(s.trips or "?") for s in steps if isinstance(s, Round))
            return f"this loop around a rendezvous runs {times} times on core 0 and 1"
        return f"core 0 reaches {step.name} here, but core 1 reaches {steps[-1].name}"


Judge = Callable[[Sequence[Stop[T]]], Violation | None]


def compare(cores: Sequence[Outline[T]], judge: Judge[T]) -> Mismatch[T] | None:
    """Return the first rendezvous that not all cores reach or that `judge` rejects, or None.

    `judge` receives the instructions of one rendezvous, one per core, all of the same row.
    """
    last: tuple[Step[T] | None, ...] = (None,) * len(cores)
    for steps in zip_longest(*cores):
        if mismatch := _mismatch(steps, last, judge):
            return mismatch
        last = steps
    return None


def _mismatch(
    steps: tuple[Step[T] | None, ...], last: tuple[Step[T] | None, ...], judge: Judge[T]
) -> Mismatch[T] | None:
    stops = [step for step in steps if isinstance(step, Stop)]
    rounds = [step for step in steps if isinstance(step, Round)]
    if len(rounds) == len(steps) and len({loop.trips for loop in rounds}) == 1:
        return compare([loop.body for loop in rounds], judge)
    if len(stops) < len(steps) or any(stop.row is not stops[0].row for stop in stops):
        return Mismatch(steps, last)
    violation = judge(stops)
    return Mismatch(steps, last, violation) if violation else None
