"""Tiles of another shape: whole rows instead of pieces, and products with swapped operands.

All are estimates: another shape changes which instruction waits for which.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator

from nkic.base.text import size
from nkic.machine.engines import Engine
from nkic.machine.facts import Facts
from nkic.machine.instructions.combined import PRODUCT
from nkic.machine.memory import PARTITIONS, Buffer
from nkic.machine.operands import Depends
from nkic.machine.timing import Timing, timing
from nkic.neff.records import PatternRecord
from nkic.report.insight import merging
from nkic.report.insight.memory import peak
from nkic.report.insight.sources import Line
from nkic.report.insight.subject import FREE, Question, Subject
from nkic.trace import Event

MOST_COLUMNS = 2048  # of a larger tile
SWAPPED = 0.9  # share of the tensor engine's time below which operands are swapped


def wider(subject: Subject) -> Iterator[Question]:
    """Ask about loads of adjacent columns, in the iterations of one loop, as one load before it."""
    loads = (
        (subject.line(event), number, event, tuple(subject.iterations(event).items())[:-1])
        for number, event in subject.transfers()
        if subject.loaded(event) is not None
    )
    timings: dict[Line, dict[int, Timing]] = defaultdict(dict)
    most: dict[Line, merging.Chain] = {}
    for line, chain in merging.pieces(loads):
        timings[line] |= merging.times(subject.trace, chain, is_first=True)
        most[line] = max(most.get(line, []), chain, key=len)
    live = peak(subject.live_ranges, Buffer.SBUF).bytes
    for line, events in timings.items():
        bytes_kept = sum(transfer.event.bytes for transfer in most[line])
        if live + bytes_kept > subject.trace.target.sbuf_usable * PARTITIONS:
            continue
        text = (
            f"load in one transfer, before the loop, what {line.short} loads in "
            f"{len(most[line]):,} pieces of adjacent columns ({size(bytes_kept)}), and use slices "
            "of that tile"
        )
        yield subject.timed(f"whole-rows:{line}", text, events, line, estimated=True)


# ---- larger tiles -------------------------------------------------------------------------------


def larger(subject: Subject) -> Iterator[Question]:
    """Ask about innermost loops over narrow columns, with several iterations done by one.

    Every instruction in the loop must work on each element alone.
    """
    loops: dict[tuple[str, ...], list[tuple[int, Event]]] = defaultdict(list)
    for number, event in enumerate(subject.trace.events):
        if event.record.row is not None:
            loops[tuple(subject.iterations(event))].append((number, event))
    for names, events in loops.items():
        if not names or any(other[: len(names)] == names != other for other in loops):
            continue
        values = sorted({subject.iterations(event)[names[-1]] for _, event in events})
        width = _width(subject, events, names[-1], values)
        count = 2
        while width * count * 2 <= MOST_COLUMNS and len(values) % (2 * count) == 0:
            count *= 2
        live = peak(subject.live_ranges, Buffer.SBUF).bytes * count
        room = subject.trace.target.sbuf_usable * PARTITIONS
        if not width or len(values) % count or width * count > MOST_COLUMNS or live > room:
            continue
        timings: dict[int, Timing] = {}
        for number, event in events:
            index = values.index(subject.iterations(event)[names[-1]])
            timings[number] = _widened(subject, event, count) if index % count == 0 else FREE
        line = subject.line(events[0][1])
        text = (
            f"work on {width * count:,} columns at once in the loop over {names[-1]} "
            f"({line.short}), not on {width}: every instruction has its own start-up, and every "
            "transfer its trigger"
        )
        yield subject.timed(f"larger-tiles:{line}", text, timings, line, estimated=True)


def _width(subject: Subject, events: list[tuple[int, Event]], name: str, values: list[int]) -> int:
    """Return the columns of the tiles of a loop; 0 if its iterations cannot be joined."""
    widths: set[int] = set()
    starts: dict[tuple[object, ...], dict[int, int]] = defaultdict(dict)
    tensors = subject.trace.executable.tensors
    for _, event in events:
        row, loops = event.record.row, subject.iterations(event)
        patterns = [o for o in event.record.operands if isinstance(o, PatternRecord)]
        assert row is not None
        if row.depends is not Depends.ELEMENTWISE or any(p.dynamic is not None for p in patterns):
            return 0
        for number, pattern in enumerate(patterns):
            if not pattern.dims or pattern.dims[-1][0] != 1:
                return 0
            if pattern.elements > pattern.partitions:
                widths.add(pattern.dims[-1][1])
            if not tensors[pattern.tensor].buffer.on_chip:
                outer = tuple(item for item in loops.items() if item[0] != name)
                starts[subject.line(event), number, *outer][loops[name]] = pattern.offset
    (width,) = widths if len(widths) == 1 else (0,)
    for offsets in starts.values():
        if len(offsets) != len(values):
            return 0
        ordered = [offsets[value] for value in values]
        if any(after - before != width for before, after in itertools.pairwise(ordered)):
            return 0
    return width if starts and len(values) > 1 else 0


def _widened(subject: Subject, event: Event, count: int) -> Timing:
    """Return the time of an instruction on so many tiles side by side."""
    record, stream = event.record, subject.trace.streams[event.stream]
    operands = tuple(
        operand._replace(
            dims=(*operand.dims[:-1], (operand.dims[-1][0], operand.dims[-1][1] * count))
        )
        if isinstance(operand, PatternRecord) and operand.elements > operand.partitions
        else operand
        for operand in record.operands
    )
    wide = record._replace(operands=operands)
    facts = subject.trace.executable.facts(wide, subject.trace.target, stream.engine)
    assert record.row is not None
    return timing(record.row, facts, stream.engine, stream.queue)


# ---- swapped operands ---------------------------------------------------------------------------


def swapped(subject: Subject) -> Iterator[Question]:
    """Ask about products whose moving operand is the wider one: several with its columns as
    stationary can take less time.
    """
    before: dict[Line, int] = defaultdict(int)
    timings: dict[Line, dict[int, Timing]] = defaultdict(dict)
    for number, event in enumerate(subject.trace.events):
        row = event.record.row
        if row is None or row.name != PRODUCT:
            continue
        line, changed = subject.line(event), _swapped(subject, event)
        if changed is not None:
            before[line] += changed[0].hold
            timings[line][number] = changed[1]
    for line, events in timings.items():
        if sum(each.hold for each in events.values()) > SWAPPED * before[line]:
            continue
        text = (
            f"swap the operands of {line.short}: its stationary one uses few of the 128 columns, "
            "so pass 128 columns of the other one as stationary, and this one as moving; the "
            "result is transposed"
        )
        yield subject.timed(f"swap:{line}", text, events, line, estimated=True)


def _swapped(subject: Subject, event: Event) -> tuple[Timing, Timing] | None:
    """Return the time of a product, and that of the products that replace it; None if its operands
    have other shapes.
    """
    facts = subject.trace.executable.facts(event.record, subject.trace.target, Engine.TENSOR)
    stationary, moving = facts.tile("stationary"), facts.tile("moving")
    if len(moving.dims) != 1 or len(stationary.dims) != 1:
        return None
    row = event.record.row
    assert row is not None
    step, columns = moving.dims[0]
    part = moving._replace(dims=((step, min(columns, PARTITIONS)),))
    operands = {**facts.operands, "stationary": part, "moving": stationary}
    changed = Facts(facts.target, operands, facts.attributes, Engine.TENSOR)
    one = timing(row, changed, Engine.TENSOR)
    count = -(-columns // PARTITIONS)
    many = one._replace(hold=one.hold * count, cold=one.cold * count)
    return timing(row, facts, Engine.TENSOR), many
