"""How long an order of issue takes: time passes over it as over the streams that it becomes.

List scheduling decides at moments when nobody knows what comes after, and takes its times from
that. Here the order is known: each stream in turn, its items when what they wait for is complete.
An item waits where no earlier one of its stream has, and two streams share one semaphore, since
what one waits for comes in the other's order: neither changes a time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from nkic.ir.program import Instruction
from nkic.ir.schedule import StreamId
from nkic.ir.tensors import AccessPattern, Tensor
from nkic.machine.clock.passing import Entry, Line, Passing
from nkic.machine.engines import Engine
from nkic.schedule.placed import Placed, Timings


def replayed(
    placed: Sequence[Placed], waits: Mapping[int, Sequence[int]], timings: Timings
) -> int | None:
    """Picoseconds from the first issue to the last completion; None if it comes to a stop. `waits`
    are what each instruction waits for, by number.
    """
    wires = _Wires(placed, waits)
    entries = _entries(placed, wires, timings)
    lines = [
        Line(i, 0, stream.engine, stream.queue, iter(entries[stream]), timings.target)
        for i, stream in enumerate(sorted(entries, key=_place))
    ]
    return Passing(lines, 1, len(wires.pairs), timings.target).go()


def _entries(
    placed: Sequence[Placed], wires: _Wires, timings: Timings
) -> dict[StreamId, list[Entry]]:
    """What time needs to know of each item, by stream."""
    found: dict[StreamId, list[Entry]] = defaultdict(list)
    written: dict[StreamId, Collection[Tensor]] = {}  # by the last item of an engine
    waits, signals, new = wires.waits.get, wires.signals.get, tuple.__new__
    meets = False  # the other cores are not known
    for one, stream in placed:
        alike, number = timings.alike(one), one.number
        timing, follows = alike.first, not alike.is_fixed
        if alike.engine is Engine.DMA:  # a queue does not wait for its own
            timing = timings.of(one, stream.queue)
        else:
            before = written.get(stream)
            if before and not follows:
                follows = any(_tensor(one, i) in before for i in alike.reads)
            written[stream] = [_tensor(one, i) for i in alike.writes] if alike.is_fixed else ()
        own = (timing, alike.table, follows, meets, waits(number, ()), signals(number, ()))
        found[stream].append(new(Entry, own))
    return found


def _tensor(one: Instruction, place: int) -> Tensor:
    """The tensor of an operand that is known to be a pattern."""
    pattern: AccessPattern = one.operands[place]  # type: ignore[assignment]
    return pattern.tensor


_ENGINES = {engine: i for i, engine in enumerate(Engine)}


def _place(stream: StreamId) -> tuple[int, int]:
    """Streams come in the order in which the file has them, which decides ties."""
    return _ENGINES[stream.engine], stream.queue


class _Wires:
    """Who signals whom, by instruction; who waits or signals at all."""

    def __init__(self, placed: Sequence[Placed], waits: Mapping[int, Sequence[int]]) -> None:
        self.waits: dict[int, tuple[tuple[int, int], ...]] = {}
        self.signals: dict[int, tuple[int, ...]] = {}
        self.pairs: dict[tuple[int, int], _Pair] = {}  # by the stream that waits, and the other
        streams = {stream: i for i, stream in enumerate(dict.fromkeys(s for _, s in placed))}
        interlocks = [stream.engine is not Engine.DMA for stream in streams]
        where: dict[int, tuple[int, int]] = {}  # the stream's number, and the position
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
    """A semaphore between two streams, and what the one that waits knows of the other."""

    __slots__ = ("known", "signal", "wait")

    def __init__(self, semaphore: int) -> None:
        self.known = -1
        self.signal = (semaphore,)
        self.wait = ((semaphore, 1),)


def _latest(
    sources: Sequence[int], where: Mapping[int, tuple[int, int]], own: int
) -> Sequence[int]:
    """The last of the sources in each stream, as streams complete in order, but for `own`: a
    compute engine knows of its own results.
    """
    if len(sources) == 1:
        return sources if where[sources[0]][0] != own else ()
    found: dict[int, int] = {}
    for source in sources:
        stream, position = where[source]
        if stream != own and (stream not in found or where[found[stream]][1] < position):
            found[stream] = source
    return list(found.values())
