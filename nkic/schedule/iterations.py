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
MIDDLE_ITERATIONS = (1, 2)  # a transfer may use different queues in each
MAX_INSTRUCTIONS = 2000  # instructions in a body; the gain from overlap is small in longer bodies


def iteration(orderer: Orderer, code: Sequence[Instruction]) -> list[Placed]:
    """Return the order of issue for `code`, the body of a loop whose iterations overlap."""
    single = orderer.stretch(code)
    if orderer.keeps_order or not 0 < len(code) <= MAX_INSTRUCTIONS:
        return single
    unrolled = _UnrolledBody(orderer, code)
    orders = [single, *unrolled.middle_orders()]
    times = [unrolled.time(order) for order in orders]
    if any(time is None for time in times):
        return single
    return orders[times.index(min(time for time in times if time is not None))]


class _UnrolledBody:
    """Consecutive iterations of a body: each instruction has one copy per iteration."""

    def __init__(self, orderer: Orderer, code: Sequence[Instruction]) -> None:
        self.orderer = orderer
        first, last = (of(instruction.number for instruction in code) for of in (min, max))
        self.step = last - first + 1
        self.body = {instruction.number: instruction for instruction in code}
        self.copies = [
            {
                number: instruction._replace(number=number + n * self.step)
                for number, instruction in self.body.items()
            }
            for n in range(ITERATIONS)
        ]
        self.instructions = {
            instruction.number: instruction for copy in self.copies for instruction in copy.values()
        }
        self.classes = orderer.timings.each(self.instructions)
        self.waits = self._waits()

    def _waits(self) -> dict[int, list[int]]:
        """Map each copy to the copies that it waits for in its own and the previous iteration."""
        waits: dict[int, list[int]] = {}
        for number in self.body:
            edges = [e for e in self.orderer.graph.edges.get(number, ()) if e.source in self.body]
            for n in range(ITERATIONS):
                sources = {
                    e.source + (n - e.distance) * self.step for e in edges if e.distance <= n
                }
                waits[number + n * self.step] = sorted(sources)
        return waits

    def middle_orders(self) -> Iterator[list[Placed]]:
        """Yield the orders that list scheduling finds for the middle iterations."""
        start = self.orderer.now
        order = ListScheduler(
            self.orderer, self.instructions, self.waits, classes=self.classes
        ).run()
        self.orderer.now = start
        for n in MIDDLE_ITERATIONS:
            copies = {
                number + n * self.step: instruction for number, instruction in self.body.items()
            }
            yield [
                Placed(copies[placed.instruction.number], placed.stream)
                for placed in order
                if placed.instruction.number in copies
            ]

    def time(self, order: Sequence[Placed]) -> int | None:
        """Return the picoseconds that all iterations take in `order`, or None on deadlock."""
        placed = [
            Placed(copy[instruction.number], stream)
            for copy in self.copies
            for instruction, stream in order
        ]
        return replayed(placed, self.waits, self.classes, self.orderer.target)
