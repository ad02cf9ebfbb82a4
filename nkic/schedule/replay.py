"""The time of an order of issue, found by replaying the streams that it becomes.

List scheduling decides without knowing what comes later and takes its times from that. Here the
order is known: each stream runs its items in order, as their dependences complete. Items wait for
instructions by number. The waits of the file, which has a semaphore for each pair of streams, lead
to the same times, since a stream sends its signals in order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from heapq import heappush

from nkic.ir.program import Instruction
from nkic.ir.schedule import StreamId
from nkic.ir.tensors import AccessPattern, Tensor
from nkic.machine.clock.simulation import Entry, Line, Queue, TimeSimulation
from nkic.machine.engines import Engine
from nkic.machine.targets import Target
from nkic.schedule.placed import Order, Stretch, stream_ids

_DMA = Engine.DMA


def replayed(order: Order, stretch: Stretch, target: Target) -> int | None:
    """Return the picoseconds from the first issue to the last completion, or None on deadlock."""
    ids = stream_ids(target)
    streams: list[list[int]] = [[] for _ in ids]
    for index in order.indices:
        streams[order.streams[index]].append(index)
    used = [(stream, items) for stream, items in zip(ids, streams, strict=True) if items]
    lines = [
        Line(
            *(number, 0, stream.engine, stream.queue),
            _entries(items, stream, stretch),
            target,
        )
        for number, (stream, items) in enumerate(used)
    ]
    return _OrderSimulation(lines, len(stretch.code), target).run()


class _OrderSimulation(TimeSimulation):
    """The event loop for items that wait for instructions by index, without semaphores.

    An entry's `waits` are the indices of the awaited instructions, and its only signal is its own
    index.
    """

    def __init__(self, lines: Sequence[Line], count: int, target: Target) -> None:
        super().__init__(lines, 1, 0, target)
        self.done = [-1] * count  # when each instruction's stream had completed it
        self.waiting: dict[int, list[Line]] = {}

    def _arrival(self, line: Line, entry: Entry) -> int | None:
        latest, done = 0, self.done
        for index in entry.waits:
            time = done[index]
            if time < 0:
                self.waiting.setdefault(index, []).append(line)
                return None
            if time > latest:
                latest = time
        return latest + self.semaphore_ps

    def _pass_signals(self, line: Line, entry: Entry, start: int, queue: Queue) -> None:
        (index,) = entry.signals
        self.done[index] = line.done
        for waiting in self.waiting.pop(index, ()):
            heappush(queue, (max(waiting.free, start), waiting.index))


def _entries(items: Sequence[int], stream: StreamId, stretch: Stretch) -> Iterator[Entry]:
    """Yield the timing entries of one stream's items, lazily: a million take 100 MB."""
    written: Collection[Tensor] = ()  # by the previous item
    new, engine, queue = tuple.__new__, stream.engine, stream.queue
    meets = False  # the other cores are unknown here
    code, classes, waits = stretch
    for index in items:
        cost, sources = classes[index], waits[index]
        timing, follows = cost.first, not cost.is_fixed
        if engine is _DMA:  # a queue does not wait for its own transfers
            timing = cost.times[queue]
        else:  # a compute engine sees its own results
            if sources:
                sources = [source for source in sources if classes[source].engine is not engine]
            if written and not follows:
                follows = any(_tensor(code[index], i) in written for i in cost.reads)
            written = [_tensor(code[index], i) for i in cost.writes] if cost.is_fixed else ()
        yield new(Entry, (timing, cost.table, follows, meets, sources, (index,)))


def _tensor(instruction: Instruction, index: int) -> Tensor:
    """Return the tensor of an operand that is known to be an access pattern."""
    pattern: AccessPattern = instruction.operands[index]  # type: ignore[assignment]
    return pattern.tensor
