"""What the cores of a program run together: do they reach the same rendezvous, in the same order?

The compiler asks about programs and the runner about files that it does not trust. Both outline
what each core does and walk the outlines side by side, so that one rule judges both. How often a
loop that a register bounds runs is known at run time only; there the runner reports a core that
waits in vain.
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
        """What messages call it."""
        return self.row.name


class Round(NamedTuple, Generic[T]):
    """A device loop with such instructions in it; `trips` is None where a register decides."""

    item: T
    trips: int | None
    body: Outline[T]

    @property
    def name(self) -> str:
        """What messages call it."""
        return "a device loop"


Step = Stop[T] | Round[T]
Outline = tuple[Step[T], ...]


class Mismatch(NamedTuple, Generic[T]):
    """Where the cores part: what each comes to there (None: it has no more), what each came to
    last in the same body, and what a row's rule says if it refuses what they bring.
    """

    steps: tuple[Step[T] | None, ...]
    last: tuple[Step[T] | None, ...] = ()
    violation: Violation | None = None

    @property
    def first(self) -> tuple[int, Step[T]]:
        """The first core that comes to something, and to what."""
        return next((core, step) for core, step in enumerate(self.steps) if step is not None)

    @property
    def without(self) -> int | None:
        """A core that has no more, where another waits."""
        return self.steps.index(None) if None in self.steps else None

    @property
    def text(self) -> str:
        """What is wrong, for a message at `first`."""
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
    """The first rendezvous that the cores do not all reach, or that `judge` refuses.

    `judge` sees the instructions of one rendezvous, one of each core and of one row.
    """
    last: tuple[Step[T] | None, ...] = (None,) * len(cores)
    for steps in zip_longest(*cores):
        if found := _mismatch(steps, last, judge):
            return found
        last = steps
    return None


def _mismatch(
    steps: tuple[Step[T] | None, ...], last: tuple[Step[T] | None, ...], judge: Judge[T]
) -> Mismatch[T] | None:
    stops = [step for step in steps if isinstance(step, Stop)]
    rounds = [step for step in steps if isinstance(step, Round)]
    if len(rounds) == len(steps) and len({one.trips for one in rounds}) == 1:
        return compare([one.body for one in rounds], judge)
    if len(stops) < len(steps) or any(stop.row is not stops[0].row for stop in stops):
        return Mismatch(steps, last)
    violation = judge(stops)
    return Mismatch(steps, last, violation) if violation else None
