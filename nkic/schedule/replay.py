"""How long an order of issue takes: time passes over it as over the streams that it becomes.

List scheduling decides at moments when nobody knows what comes after, and takes its times from
that. Here the order is known: each stream in turn, its items when what they wait for is complete.
Semaphores are one for each wait that no earlier wait of its stream implies, which changes no time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from nkic.ir.program import Operand
from nkic.ir.schedule import StreamId
from nkic.ir.tensors import AccessPattern
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
    entries: dict[StreamId, list[Entry]] = defaultdict(list)
    before: dict[StreamId, Collection[int]] = {}
    for one, stream in placed:
        alike, operands = timings.alike(one), one.operands
        written, is_fixed = before.get(stream, ()), alike.is_fixed
        follows = not is_fixed  # a queue does not wait for its own
        if written and not follows:
            follows = any(_tensor(operands[i]) in written for i in alike.reads)
        entry = Entry(
            timings.of(one, stream.queue),
            alike.table,
            follows,
            False,  # the other cores are not known
            wires.waits.get(one.number, ()),
            wires.signals.get(one.number, ()),
        )
        entries[stream].append(entry)
        before[stream] = [_tensor(operands[i]) for i in alike.writes] if is_fixed else ()
    lines = [
        Line(i, 0, stream.engine, stream.queue, iter(entries[stream]), timings.target)
        for i, stream in enumerate(sorted(entries, key=_place))
    ]
    return Passing(lines, 1, wires.count, timings.target).go()


def _tensor(operand: Operand) -> int:
    return operand.tensor.number if isinstance(operand, AccessPattern) else -1


_ENGINES = {engine: i for i, engine in enumerate(Engine)}


def _place(stream: StreamId) -> tuple[int, int]:
    """Streams come in the order in which the file has them, which decides ties."""
    return _ENGINES[stream.engine], stream.queue


class _Wires:
    """Who signals whom, by instruction; who waits or signals at all."""

    def __init__(self, placed: Sequence[Placed], waits: Mapping[int, Sequence[int]]) -> None:
        self.waits: dict[int, list[tuple[int, int]]] = {}
        self.signals: dict[int, list[int]] = {}
        self.count = 0
        streams = {stream: i for i, stream in enumerate(dict.fromkeys(s for _, s in placed))}
        interlocks = [stream.engine is not Engine.DMA for stream in streams]
        where: dict[int, tuple[int, int]] = {}  # the stream's number, and the position
        known: dict[tuple[int, int], int] = {}
        for position, (one, its) in enumerate(placed):
            number, stream = one.number, streams[its]
            where[number] = stream, position
            sources = waits[number]
            if not sources:
                continue
            for source in _latest(sources, where, stream if interlocks[stream] else -1):
                other, at = where[source]
                pair = (stream, other)
                if known.get(pair, -1) < at:
                    known[pair] = at
                    self._connect(source, number)

    def _connect(self, source: int, number: int) -> None:
        self.signals.setdefault(source, []).append(self.count)
        self.waits.setdefault(number, []).append((self.count, 1))
        self.count += 1


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
