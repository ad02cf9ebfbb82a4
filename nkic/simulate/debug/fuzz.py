"""Fuzzing of execution orders: whether outputs depend on anything but the semaphores.

The program runs in many of the orders that its semaphores allow. If an order changes the outputs,
the two instructions whose order matters are found by bisection between the two orders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nkic.base.diagnostics import ProgramFault
from nkic.neff.records import Executable
from nkic.simulate.debug.interleaved import Action, Interleaved, Order, Recorded
from nkic.simulate.debug.observed import Observed
from nkic.simulate.debug.orders import Drawn, Scripted
from nkic.simulate.options import RunOptions
from nkic.simulate.stage import MachineMaker, simulate_ranks
from nkic.simulate.streams import Item, Runner

Arrays = Mapping[str, NDArray[np.generic]]
Log = Sequence[Action]


class Outcome(NamedTuple):
    """Hashes of the outputs of every rank, or the failure of the run."""

    outputs: tuple[tuple[str, str], ...]
    failure: str = ""

    def differs(self, other: Outcome) -> str:
        """Describe how `other` differs from this outcome."""
        if other.failure:
            return f"a run that fails: {other.failure}"
        if self.failure:
            return "a run that does not fail"
        names = [
            n
            for (n, hash_here), (_, hash_there) in zip(self.outputs, other.outputs, strict=True)
            if hash_here != hash_there
        ]
        return f"other values in {', '.join(f'`{name}`' for name in names)}"


class Party(NamedTuple):
    """One of two instructions that race."""

    runner: Runner
    item: Item


class Race(NamedTuple):
    """A drawn order changes the outputs, and `first` and `second` are the cause.

    They are adjacent in two orders that are otherwise the same; `first` is before `second` in the
    order with the outputs of the normal run. Both are None if neither order can be transformed into
    the other, because loops take different decisions.
    """

    drawn: Drawn
    difference: str
    first: Party | None
    second: Party | None
    machine: Interleaved


class Fuzz:
    """Tries orders of one program on one set of inputs."""

    def __init__(
        self, executable: Executable, inputs: Sequence[Arrays], options: RunOptions, seed: int
    ) -> None:
        self.executable = executable
        self.inputs = inputs
        # Other orders split a transfer into parts, which the race detector does not follow; its
        # vector clocks find the races of every order in the normal run.
        self.options = replace(
            options, max_cycles=None, trace=0, timeline=0, report_bounds=False, check_races=False
        )
        self.seed = seed

    def search(self, count: int) -> Race | None:
        """Return the first of `count` orders whose outputs differ from the normal run's, if any."""
        recorded = Recorded()
        normal = self._outcome(partial(Observed, observers=[recorded]))
        for number in range(count):
            drawn = Drawn(self.seed, number)
            machine, outcome = self.run(drawn)
            if outcome != normal:
                return self._race(drawn, normal, outcome, recorded.log, machine)
        return None

    def run(self, order: Order) -> tuple[Interleaved, Outcome]:
        """Run in that order."""
        machines: list[Interleaved] = []

        def make(*facts: object, **more: object) -> Interleaved:
            machines.append(Interleaved(*facts, order=order, **more))  # type: ignore[arg-type]
            return machines[-1]

        outcome = self._outcome(make)
        return machines[0], outcome

    def _outcome(self, make: MachineMaker) -> Outcome:
        try:
            results = simulate_ranks(self.executable, self.inputs, self.options, make)
        except ProgramFault as fault:
            diagnostic = fault.diagnostics[0]
            return Outcome((), f"{diagnostic.code.slug}: {diagnostic.message}")
        outputs = [pair for result in results for pair in result.outputs.items()]
        return Outcome(tuple((n, sha256(a.tobytes()).hexdigest()) for n, a in outputs))

    def _race(
        self, drawn: Drawn, normal: Outcome, outcome: Outcome, before: Log, machine: Interleaved
    ) -> Race:
        """Find the race between the orders of the normal run and of `machine`.

        A failed run is incomplete: the search continues it like the other one.
        """
        whole, part = (machine.log, before) if normal.failure else (before, machine.log)
        wanted = outcome if normal.failure else normal
        pair = Bisection(lambda order: self.run(Scripted(order))[1] == wanted)
        actions = pair.search(whole, part)
        difference = normal.differs(outcome)
        if actions is None:
            return Race(drawn, difference, None, None, machine)
        full, _ = self.run(Scripted(whole))
        items = {**machine.items, **full.items}
        first, second = (_party(full, items, action) for action in actions)
        if normal.failure:
            first, second = second, first
        return Race(drawn, difference, first, second, machine)


def _party(
    machine: Interleaved, items: Mapping[tuple[int, int], Item], action: Action
) -> Party | None:
    item = items.get((action.stream, action.number))
    return Party(machine.runners[action.stream], item) if item is not None else None


class Bisection:
    """Finds two actions whose order decides whether an order `is_normal`."""

    def __init__(self, is_normal: Callable[[Sequence[Action]], bool]) -> None:
        self.is_normal = is_normal

    def search(
        self, normal: Sequence[Action], other: Sequence[Action]
    ) -> tuple[Action, Action] | None:
        """Return the action that is first in `normal`, and the one that is first in `other`.

        Every order tried is a prefix of `other` continued as `normal`: both satisfy the semaphores,
        and so does the combination.
        """

        def combined(count: int) -> list[Action]:
            done = set(other[:count])
            return [*other[:count], *(action for action in normal if action not in done)]

        if self.is_normal(combined(len(other))) or not self.is_normal(combined(0)):
            return None
        count = self._bisect(combined, 0, len(other))
        return self._obstacle(combined(count), other[count], count)

    def _obstacle(
        self, order: list[Action], late: Action, start: int
    ) -> tuple[Action, Action] | None:
        """Return the action that `late` must not precede, as it moves ahead to `start`."""
        if late not in order:
            return None
        index = order.index(late)

        def ahead(steps: int) -> list[Action]:
            position = index - steps
            return [*order[:position], late, *order[position:index], *order[index + 1 :]]

        steps = self._bisect(ahead, 0, index - start)
        return order[index - steps - 1], late

    def _bisect(self, order: Callable[[int], list[Action]], low: int, high: int) -> int:
        """Bisect: return the last number, from `low`, whose order is usual."""
        while high - low > 1:
            middle = (low + high) // 2
            if self.is_normal(order(middle)):
                low = middle
            else:
                high = middle
        return low
