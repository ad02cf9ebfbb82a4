"""Transfers of one line that could be coalesced: they move adjacent columns of the same tensors."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from nkic.machine.engines import Engine
from nkic.machine.timing import Timing, timing
from nkic.neff.records import InstructionRecord, PatternRecord
from nkic.report.insight.sources import Line
from nkic.trace import Event, Trace

_Key = tuple[object, ...]


class Transfer(NamedTuple):
    """A transfer of contiguous columns: its number and event, and its operands."""

    number: int
    event: Event
    patterns: list[PatternRecord]


Chain = list[Transfer]


def chains(transfers: Iterable[tuple[Line, int, Event]]) -> Iterator[tuple[Line, Chain]]:
    """Yield, by line, two or more transfers that together move contiguous columns from one tensor
    to another.

    They are in the order of the columns; several queues may have run them in any order.
    """
    groups: dict[_Key, list[dict[int, Transfer]]] = defaultdict(list)
    lines: dict[_Key, Line] = {}
    for line, number, event in transfers:
        patterns = _patterns(event.record)
        if patterns is None:
            continue
        first = patterns[0].offset
        key: _Key = (
            line,
            event.record.row,
            *(p._replace(offset=p.offset - first) for p in patterns),
        )
        lines[key] = line
        passes = groups[key]
        free = next((by_offset for by_offset in passes if first not in by_offset), None)
        if free is None:
            passes.append(free := {})
        free[first] = Transfer(number, event, patterns)
    for key, passes in groups.items():
        for by_offset in passes:
            yield from ((lines[key], chain) for chain in _runs(by_offset) if len(chain) > 1)


def _runs(by_offset: dict[int, Transfer], side: int = 0) -> Iterator[Chain]:
    """Yield the transfers that move contiguous columns, as long as possible.

    `side` is the operand whose offsets these are.
    """
    chain: Chain = []
    expected = 0
    for first in sorted(by_offset):
        if chain and first != expected:
            yield chain
            chain = []
        chain.append(by_offset[first])
        expected = first + by_offset[first].patterns[side].dims[-1][1]
    if chain:
        yield chain


class Accesses:
    """The events that access each tensor, by number, in order."""

    def __init__(self, trace: Trace) -> None:
        self.tensors = trace.executable.tensors
        self.by_tensor: dict[int, list[int]] = defaultdict(list)
        for number, event in enumerate(trace.events):
            operands = (o for o in event.record.operands if isinstance(o, PatternRecord))
            for tensor in dict.fromkeys(operand.tensor for operand in operands):
                self.by_tensor[tensor].append(number)

    def none_between(self, chain: Chain) -> bool:
        """Whether no other event accesses the tile on chip from the first transfer of the chain to
        the last.

        Then it makes no difference which of them moves all of it.
        """
        numbers = {transfer.number for transfer in chain}
        for pattern in chain[0].patterns:
            if self.tensors[pattern.tensor].buffer.on_chip:
                accesses = self.by_tensor[pattern.tensor]
                first = bisect_left(accesses, min(numbers))
                end = bisect_right(accesses, max(numbers))
                if not numbers.issuperset(accesses[first:end]):
                    return False
        return True


def times(trace: Trace, chain: Chain, is_first: bool = False) -> dict[int, Timing]:
    """Return timings in which the transfer that ran last, or first, does the work of all, and the
    others take no time.
    """
    choose = min if is_first else max
    number, event, _ = choose(chain, key=lambda transfer: transfer.number)
    wide = tuple(_widened(pattern, len(chain)) for pattern in chain[0].patterns)
    record = event.record._replace(operands=wide)
    stream = trace.streams[event.stream]
    facts = trace.executable.facts(record, trace.target, Engine.DMA)
    row = record.row
    assert row is not None
    timings = {transfer.number: Timing(0, 0) for transfer in chain}
    return timings | {number: timing(row, facts, Engine.DMA, stream.queue)}


def pieces(transfers: Iterable[tuple[Line, int, Event, _Key]]) -> Iterator[tuple[Line, Chain]]:
    """Yield, by line, loads of adjacent columns of one tensor into tiles of their own.

    Each comes with the iterations of the loops around the innermost one, which they share.
    """
    groups: dict[_Key, dict[int, Transfer]] = defaultdict(dict)
    for line, number, event, outer in transfers:
        patterns = _patterns(event.record)
        if patterns is not None and len(patterns[1].dims) > 1 and patterns[1].dims[0][0]:
            tile, source = patterns
            form = (tile.dtype, tile.partitions, tile.dims, source._replace(offset=0))
            row = source.offset // source.dims[0][0]
            at = Transfer(number, event, patterns)
            groups[(line, *outer, row, *form)].setdefault(source.offset, at)
    for key, by_offset in groups.items():
        for chain in _runs(by_offset, 1):
            if len(chain) > 1:
                yield key[0], chain  # type: ignore[misc]


def _patterns(record: InstructionRecord) -> list[PatternRecord] | None:
    """Return the operands of a transfer of contiguous columns; None for other instructions."""
    patterns = [operand for operand in record.operands if isinstance(operand, PatternRecord)]
    is_plain = all(
        pattern.dynamic is None and pattern.dims and pattern.dims[-1][0] == 1
        for pattern in patterns
    )
    return patterns if is_plain and len(patterns) == len(record.operands) == 2 else None


def _widened(pattern: PatternRecord, count: int) -> PatternRecord:
    *outer, (step, num) = pattern.dims
    return pattern._replace(dims=(*outer, (step, num * count)))
