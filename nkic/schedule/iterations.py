"""The order of issue for the body of a device loop whose iterations overlap.

The best order for a single iteration need not be the best for overlapping ones: the start of the
next iteration competes for engines with the end of this one. So several iterations are scheduled as
straight-line code, and the order found for a middle iteration is kept if the loop runs faster with
it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nkic.ir.program import Instruction
from nkic.schedule.order import ListScheduler, Orderer
from nkic.schedule.placed import Placed
from nkic.schedule.replay import replayed

ITERATIONS = 4  # from the second on, an iteration waits for the previous one like all later ones
AMID = (1, 2)  # middle iterations; a transfer may use different queues in each
MOST = 2000  # instructions in a body; the gain from overlap is small in longer bodies


def iteration(orderer: Orderer, code: Sequence[Instruction]) -> list[Placed]:
    """Return the order of issue for `code`, the body of a loop whose iterations overlap."""
    alone = orderer.stretch(code)
    if orderer.keeps_order or not 0 < len(code) <= MOST:
        return alone
    several = _Several(orderer, code)
    orders = [alone, *several.amid()]
    times = [several.time(order) for order in orders]
    if any(time is None for time in times):
        return alone
    return orders[times.index(min(time for time in times if time is not None))]


class _Several:
    """Consecutive iterations of a body: each instruction has one copy per iteration."""

    def __init__(self, orderer: Orderer, code: Sequence[Instruction]) -> None:
        self.orderer = orderer
        first, last = (of(one.number for one in code) for of in (min, max))
        self.step = last - first + 1
        self.own = {one.number: one for one in code}
        self.copies = [
            {
                number: one._replace(number=number + n * self.step)
                for number, one in self.own.items()
            }
            for n in range(ITERATIONS)
        ]
        self.here = {one.number: one for copy in self.copies for one in copy.values()}
        self.alikes = orderer.timings.each(self.here)
        self.waits = self._waits()

    def _waits(self) -> dict[int, list[int]]:
        """Map each copy to the copies that it waits for in its own and the previous iteration."""
        found: dict[int, list[int]] = {}
        for number in self.own:
            edges = [e for e in self.orderer.graph.edges.get(number, ()) if e.source in self.own]
            for n in range(ITERATIONS):
                sources = {
                    e.source + (n - e.distance) * self.step for e in edges if e.distance <= n
                }
                found[number + n * self.step] = sorted(sources)
        return found

    def amid(self) -> Iterator[list[Placed]]:
        """Yield the orders that list scheduling finds for the middle iterations."""
        begun = self.orderer.now
        found = ListScheduler(self.orderer, self.here, self.waits, alikes=self.alikes).go()
        self.orderer.now = begun
        for n in AMID:
            own = {number + n * self.step: one for number, one in self.own.items()}
            yield [
                Placed(own[p.instruction.number], p.stream)
                for p in found
                if p.instruction.number in own
            ]

    def time(self, order: Sequence[Placed]) -> int | None:
        """Return the picoseconds that all iterations take in `order`, or None on deadlock."""
        placed = [Placed(copy[one.number], stream) for copy in self.copies for one, stream in order]
        return replayed(placed, self.waits, self.alikes, self.orderer.timings)
