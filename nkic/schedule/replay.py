"""The time of an order of issue, found by replaying the streams that it becomes.

List scheduling decides without knowing what comes later and takes its times from that. Here the
order is known: each stream runs its items in order, as their dependences complete. Items wait for
instructions by number. The waits of the file, which has a semaphore for each pair of streams, lead
to the same times, since a stream sends its signals in order.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from heapq import heappush

from nkic.ir.program import Instruction
from nkic.ir.schedule import StreamId
from nkic.ir.tensors import AccessPattern, Tensor
from nkic.machine.clock.simulation import Entry, Line, Queue, TimeSimulation
from nkic.machine.engines import Engine
from nkic.machine.targets import Target
from nkic.schedule.placed import CostClass, Placed

_DMA = Engine.DMA


def replayed(
    placed: Sequence[Placed],
    waits: Mapping[int, Sequence[int]],
    classes: Mapping[int, CostClass],
    target: Target,
) -> int | None:
    """Return the picoseconds from the first issue to the last completion, or None on deadlock.

    `waits` maps each instruction's number to the numbers that it waits for, `classes` to its cost
    class.
    """
    streams: dict[StreamId, list[Instruction]] = defaultdict(list)
    for instruction, stream_id in placed:
        streams[stream_id].append(instruction)
    lines = [
        Line(
            *(index, 0, stream_id.engine, stream_id.queue),
            _entries(streams[stream_id], stream_id, waits, classes),
            target,
        )
        for index, stream_id in enumerate(sorted(streams, key=_file_position))
    ]
    return _OrderSimulation(lines, target).run()


class _OrderSimulation(TimeSimulation):
    """The event loop for items that wait for instructions by number, without semaphores.

    An entry's `waits` are the numbers of the awaited instructions, and its only signal is its own
    number.
    """

    def __init__(self, lines: Sequence[Line], target: Target) -> None:
        super().__init__(lines, 1, 0, target)
        self.done: dict[int, int] = {}  # when each instruction's stream had completed it
        self.waiting: dict[int, list[Line]] = {}

    def _arrival(self, line: Line, entry: Entry) -> int | None:
        latest, done = 0, self.done
        for number in entry.waits:
            time = done.get(number)
            if time is None:
                self.waiting.setdefault(number, []).append(line)
                return None
            if time > latest:
                latest = time
        return latest + self.semaphore_ps

    def _pass_signals(self, line: Line, entry: Entry, start: int, queue: Queue) -> None:
        (number,) = entry.signals
        self.done[number] = line.done
        for waiting in self.waiting.pop(number, ()):
            heappush(queue, (max(waiting.free, start), waiting.index))


def _entries(
    code: Sequence[Instruction],
    stream: StreamId,
    waits: Mapping[int, Sequence[int]],
    classes: Mapping[int, CostClass],
) -> Iterator[Entry]:
    """Yield the timing entries of one stream's items, lazily: a million take 100 MB."""
    written: Collection[Tensor] = ()  # by the previous item
    new, engine, queue = tuple.__new__, stream.engine, stream.queue
    meets = False  # the other cores are unknown here
    for instruction in code:
        number = instruction.number
        cost, sources = classes[number], waits[number]
        timing, follows = cost.first, not cost.is_fixed
        if engine is _DMA:  # a queue does not wait for its own transfers
            timing = cost.times[queue]
        else:  # a compute engine sees its own results
            if sources:
                sources = [source for source in sources if classes[source].engine is not engine]
            if written and not follows:
                follows = any(_tensor(instruction, i) in written for i in cost.reads)
            written = [_tensor(instruction, i) for i in cost.writes] if cost.is_fixed else ()
        yield new(Entry, (timing, cost.table, follows, meets, sources, (number,)))


def _tensor(instruction: Instruction, index: int) -> Tensor:
    """Return the tensor of an operand that is known to be an access pattern."""
    pattern: AccessPattern = instruction.operands[index]  # type: ignore[assignment]
    return pattern.tensor


_ENGINES = {engine: i for i, engine in enumerate(Engine)}


def _file_position(stream: StreamId) -> tuple[int, int]:
    """Return a stream's sort key: the order of the file, which breaks ties."""
    return _ENGINES[stream.engine], stream.queue
