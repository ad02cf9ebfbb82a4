"""The time of an order of issue, found by replaying the streams that it becomes.

List scheduling decides without knowing what comes later and takes its times from that. Here the
order is known: each stream runs its items in order, as their dependences complete. A wait that an
earlier item of the stream already made is dropped, and two streams share one semaphore, since
signals arrive in the order of the signalling stream; neither changes a time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from nkic.ir.program import Instruction
from nkic.ir.schedule import StreamId
from nkic.ir.tensors import AccessPattern, Tensor
from nkic.machine.clock.simulation import Entry, Line, TimeSimulation
from nkic.machine.engines import Engine
from nkic.schedule.placed import Alike, Placed, Timings


def replayed(
    placed: Sequence[Placed],
    waits: Mapping[int, Sequence[int]],
    alikes: Mapping[int, Alike],
    timings: Timings,
) -> int | None:
    """Return the picoseconds from the first issue to the last completion, or None on deadlock.

    `waits` maps each instruction's number to the numbers that it waits for, `alikes` to its shared
    facts.
    """
    wires = _Wires(placed, waits)
    streams: dict[StreamId, list[Instruction]] = defaultdict(list)
    for one, stream in placed:
        streams[stream].append(one)
    lines = [
        Line(
            *(i, 0, stream.engine, stream.queue),
            _entries(streams[stream], stream, wires, alikes, timings),
            timings.target,
        )
        for i, stream in enumerate(sorted(streams, key=_place))
    ]
    return TimeSimulation(lines, 1, len(wires.pairs), timings.target).run()


def _entries(
    code: Sequence[Instruction],
    stream: StreamId,
    wires: _Wires,
    alikes: Mapping[int, Alike],
    timings: Timings,
) -> Iterator[Entry]:
    """Yield the timing entries of one stream's items, lazily: a million take 100 MB."""
    written: Collection[Tensor] = ()  # by the previous item
    waits, signals, new = wires.waits.get, wires.signals.get, tuple.__new__
    is_dma, queue, on = stream.engine is Engine.DMA, stream.queue, timings.on
    meets = False  # the other cores are unknown here
    for one in code:
        number = one.number
        alike = alikes[number]
        timing, follows = alike.first, not alike.is_fixed
        if is_dma:  # a queue does not wait for its own transfers
            timing = on(queue, alike, one)
        else:
            if written and not follows:
                follows = any(_tensor(one, i) in written for i in alike.reads)
            written = [_tensor(one, i) for i in alike.writes] if alike.is_fixed else ()
        own = (timing, alike.table, follows, meets, waits(number, ()), signals(number, ()))
        yield new(Entry, own)


def _tensor(one: Instruction, place: int) -> Tensor:
    """Return the tensor of an operand that is known to be an access pattern."""
    pattern: AccessPattern = one.operands[place]  # type: ignore[assignment]
    return pattern.tensor


_ENGINES = {engine: i for i, engine in enumerate(Engine)}


def _place(stream: StreamId) -> tuple[int, int]:
    """Return a stream's sort key: the order of the file, which breaks ties."""
    return _ENGINES[stream.engine], stream.queue


class _Wires:
    """The semaphores between streams: waits and signals by instruction."""

    def __init__(self, placed: Sequence[Placed], waits: Mapping[int, Sequence[int]]) -> None:
        self.waits: dict[int, tuple[tuple[int, int], ...]] = {}
        self.signals: dict[int, tuple[int, ...]] = {}
        self.pairs: dict[tuple[int, int], _Pair] = {}  # by waiting stream and signalling stream
        streams = {stream: i for i, stream in enumerate(dict.fromkeys(s for _, s in placed))}
        interlocks = [stream.engine is not Engine.DMA for stream in streams]
        where: dict[int, tuple[int, int]] = {}  # the stream's index, and the position
        for position, (one, its) in enumerate(placed):
            number, stream = one.number, streams[its]
            where[number] = stream, position
            sources = waits[number]
            if not sources:
                continue
            for source in _latest(sources, where, stream if interlocks[stream] else -1):
                other, at = where[source]
                pair = self.pairs.get((stream, other)) or self._pair(stream, other)
                if pair.known < at:
                    pair.known = at
                    self.signals[source] = self.signals.get(source, ()) + pair.signal
                    self.waits[number] = self.waits.get(number, ()) + pair.wait

    def _pair(self, waiter: int, other: int) -> _Pair:
        pair = self.pairs[waiter, other] = _Pair(len(self.pairs))
        return pair


class _Pair:
    """A semaphore between two streams, and the last signalling position waited for."""

    __slots__ = ("known", "signal", "wait")

    def __init__(self, semaphore: int) -> None:
        self.known = -1
        self.signal = (semaphore,)
        self.wait = ((semaphore, 1),)


def _latest(
    sources: Sequence[int], where: Mapping[int, tuple[int, int]], own: int
) -> Sequence[int]:
    """Return the last source in each stream, since streams complete in order.

    Sources in the stream `own` are left out: a compute engine sees its own results.
    """
    if len(sources) == 1:
        return sources if where[sources[0]][0] != own else ()
    found: dict[int, int] = {}
    for source in sources:
        stream, position = where[source]
        if stream != own and (stream not in found or where[found[stream]][1] < position):
            found[stream] = source
    return list(found.values())
