"""The order of a device loop's body where turns overlap.

An order that is best for a turn alone need not be best for turns that run into each other: what
the next one begins with wants the engines that this one ends with. So several turns are scheduled
as if there were no loop, and what is found for one in their midst is kept where turns follow each
other faster that way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nkic.ir.program import Instruction
from nkic.schedule.order import ListScheduler, Orderer
from nkic.schedule.placed import Placed
from nkic.schedule.replay import replayed

ITERATIONS = 4  # from the second one on a turn waits for the one before it like all later ones
AMID = (1, 2)  # have turns before and after them; transfers may change queues from turn to turn
MOST = 2000  # instructions of a body: beyond, turns are long against what overlaps


def iteration(orderer: Orderer, code: Sequence[Instruction]) -> list[Placed]:
    """The order of issue of `code`, the body of a loop whose turns overlap."""
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
    """Some turns of a body, one after the other: each instruction is there once for each."""

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
        orderer.kept += (one for copy in self.copies for one in copy.values())
        self.waits = self._waits()

    def _waits(self) -> dict[int, list[int]]:
        """What each copy waits for, among those of its own turn and of the one before."""
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
        """The orders of turns that others come before and after."""
        here = {one.number: one for copy in self.copies for one in copy.values()}
        begun = self.orderer.now
        found = ListScheduler(self.orderer, here, self.waits).go()
        self.orderer.now = begun
        for n in AMID:
            own = {number + n * self.step: one for number, one in self.own.items()}
            yield [
                Placed(own[p.instruction.number], p.stream)
                for p in found
                if p.instruction.number in own
            ]

    def time(self, order: Sequence[Placed]) -> int | None:
        """Picoseconds of all turns, each in this order; None if they come to a stop."""
        placed = [Placed(copy[one.number], stream) for copy in self.copies for one, stream in order]
        return replayed(placed, self.waits, self.orderer.timings)
