"""The time of an order of issue, found by replaying the streams that it becomes.

List scheduling decides without knowing what comes later and takes its times from that. Here the
order is known: each stream runs its items in order, as their dependences complete. Items wait for
instructions by number. The waits of the file, which has a semaphore for each pair of streams, lead
to the same times, since a stream sends its signals in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappush
from typing import Any

from nkic.ir.schedule import StreamId
from nkic.ir.tensors import Tensor
from nkic.machine.clock.simulation import Fields, Line, Queue, TimeSimulation
from nkic.machine.engines import Engine
from nkic.machine.targets import Target
from nkic.schedule.placed import Order, Stretch, stream_ids


def replayed(order: Order, stretch: Stretch, target: Target) -> int | None:
    """Return the picoseconds from the first issue to the last completion, or None on deadlock."""
    ids = stream_ids(target)
    streams: list[list[int]] = [[] for _ in ids]
    for index in order.indices:
        streams[order.streams[index]].append(index)
    used = [(stream, items) for stream, items in zip(ids, streams, strict=True) if items]
    lines = [
        Line(number, 0, stream.engine, stream.queue, _entries(items, stream, stretch), target)
        for number, (stream, items) in enumerate(used)
    ]
    return _OrderSimulation(lines, len(stretch.code), target).run()


class _OrderSimulation(TimeSimulation):
    """The event loop for items that wait for instructions by index, without semaphores.

    An entry's `waits` are the indices of the awaited instructions, and its only signal is its own
    index. The other cores are unknown, so that no item is a rendezvous.
    """

    def __init__(self, lines: Sequence[Line], count: int, target: Target) -> None:
        super().__init__(lines, 1, 0, target)
        self.done = [-1] * count  # when each instruction's stream had completed it
        self.waiting: dict[int, list[Line]] = {}

    def _arrival(self, line: Line, waits: Sequence[int]) -> int | None:
        latest, done = 0, self.done
        for index in waits:
            time = done[index]
            if time < 0:
                self.waiting.setdefault(index, []).append(line)
                return None
            if time > latest:
                latest = time
        return latest + self.semaphore_ps

    def _pass_signals(
        self, line: Line, waits: Sequence[int], signals: int, start: int, queue: Queue
    ) -> None:
        self.done[signals] = line.done
        if signals in self.waiting:
            for waiting in self.waiting.pop(signals):
                heappush(queue, (max(waiting.free, start), waiting.index))


def _entries(items: Sequence[int], stream: StreamId, stretch: Stretch) -> Iterator[Fields]:
    """Return the timing entries of one stream's items, lazily: a million take 100 MB."""
    if stream.engine is Engine.DMA:
        return _transfers(items, stream.queue, stretch)
    return _work(items, stream.engine, stretch)


def _transfers(items: Sequence[int], queue: int, stretch: Stretch) -> Iterator[Fields]:
    """Yield the timing entries of a queue, which does not wait for its own transfers."""
    _, classes, waits = stretch
    for index in items:
        cost = classes[index]
        yield cost.times[queue], "", not cost.is_fixed, False, waits[index], index


def _work(items: Sequence[int], engine: Engine, stretch: Stretch) -> Iterator[Fields]:
    """Yield the timing entries of a compute engine, which sees its own results."""
    code, classes, waits = stretch
    written = set[Tensor]()  # by the previous item
    for index in items:
        cost, sources = classes[index], waits[index]
        if sources:
            sources = [source for source in sources if classes[source].engine is not engine]
        operands: Sequence[Any] = code[index].operands
        follows = not cost.is_fixed
        if written and not follows:
            follows = not written.isdisjoint([operands[i].tensor for i in cost.reads])
        written = {operands[i].tensor for i in cost.writes} if cost.is_fixed else set()
        yield cost.first, cost.table, follows, False, sources, index
