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
from nkic.schedule.placed import Order, Stretch
from nkic.schedule.replay import replayed

ITERATIONS = 4  # from the second on, an iteration waits for the previous one like all later ones
MIDDLE_ITERATIONS = (1, 2)  # a transfer may use different queues in each
MAX_INSTRUCTIONS = 2000  # instructions in a body; the gain from overlap is small in longer bodies


def iteration(orderer: Orderer, body: Stretch) -> Order:
    """Return the order of issue for the body of a loop whose iterations overlap."""
    single = orderer.order(body)
    if orderer.keeps_order or not 0 < len(body.code) <= MAX_INSTRUCTIONS:
        return single
    unrolled = _UnrolledBody(orderer, body)
    orders = [single, *unrolled.middle_orders()]
    times = [unrolled.time(order) for order in orders]
    if any(time is None for time in times):
        return single
    return orders[times.index(min(time for time in times if time is not None))]


class _UnrolledBody:
    """Consecutive iterations of a body: each instruction has one copy per iteration."""

    def __init__(self, orderer: Orderer, body: Stretch) -> None:
        self.orderer = orderer
        self.size = len(body.code)
        self.copies = Stretch(
            [*body.code] * ITERATIONS, body.classes * ITERATIONS, self._waits(body.code)
        )

    def _waits(self, code: Sequence[Instruction]) -> list[Sequence[int]]:
        """Return the copies that each copy waits for in its own and the previous iteration."""
        index_of = {instruction.number: index for index, instruction in enumerate(code)}
        edges = [
            [
                (index_of[edge.source], edge.distance)
                for edge in self.orderer.graph.sources(number)
                if edge.source in index_of
            ]
            for number in index_of
        ]
        return [
            sorted({(n - distance) * self.size + i for i, distance in sources if distance <= n})
            for n in range(ITERATIONS)
            for sources in edges
        ]

    def middle_orders(self) -> Iterator[Order]:
        """Yield the orders that list scheduling finds for the middle iterations."""
        start, size = self.orderer.now, self.size
        indices, streams = ListScheduler(self.orderer, self.copies).run()
        self.orderer.now = start
        for low in (n * size for n in MIDDLE_ITERATIONS):
            inside = [index - low for index in indices if low <= index < low + size]
            yield Order(inside, streams[low : low + size])

    def time(self, order: Order) -> int | None:
        """Return the picoseconds that all iterations take in `order`, or None on deadlock."""
        starts = range(0, ITERATIONS * self.size, self.size)
        indices = [start + index for start in starts for index in order.indices]
        repeated = Order(indices, order.streams * ITERATIONS)
        return replayed(repeated, self.copies, self.orderer.target)
