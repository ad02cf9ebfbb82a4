"""A run that questions are asked about, and what they have in common."""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import NamedTuple

from nkic.artifact.events import Change, Event, Trace
from nkic.artifact.records import InstructionRecord, OperandRecord, PatternRecord, StreamRecord
from nkic.base.text import size, whole_number
from nkic.machine.instructions import ROWS
from nkic.machine.instructions.combined import (
    ACTIVATION,
    NEGATED,
    PRODUCT,
    TRIGGERS,
    WITH_SCALARS,
    adding_up,
    in_turn,
    is_addition,
    is_multiplication,
    is_sum_of_columns,
    joined,
    joining,
    may_add_up,
)
from nkic.machine.operands import Depends, Facts, Row
from nkic.machine.rules import violations
from nkic.machine.targets import PARTITIONS, PSUM_BANK_BYTES, Buffer, Engine
from nkic.machine.timing import Timing, timing
from nkic.report.costs import HBM, Accounts, Edge, LiveRange, edges, levels, peak
from nkic.report.critical import Line, Segment, Spent

FREE = Timing(0, 0)


@dataclass(frozen=True)
class Question:
    """A hypothetical change. `name` is for programs, `text` for people: the advice, or what would
    be free.

    `weight` is the part of the critical path that it concerns, in picoseconds. The answer is valid
    only if the run with `given` takes as long as the original. `code` is the related compiler
    warning. `estimated`: the run is not that of the kernel with the advice, but an approximation.
    `adds` are keywords to add to the line's call, if that is all; `loads` are the lines whose
    transfers it would not repeat.
    """

    name: str
    text: str
    change: Change
    is_advice: bool
    weight: int
    line: Line | None = None
    given: Change | None = None
    code: str = ""
    estimated: bool = False
    adds: str = ""
    loads: tuple[Line, ...] = ()


def timed_change(events: Mapping[int, Timing]) -> Change:
    return Change(retimed=lambda number, event, original: events.get(number, original))


class Subject:
    """A recorded run with its critical path, costs and memory."""

    def __init__(
        self, accounts: Accounts, path: list[Segment], live_ranges: list[LiveRange]
    ) -> None:
        self.accounts = accounts
        self.trace = accounts.trace
        self.path = path
        self.live_ranges = live_ranges
        self._iterations: dict[int, dict[str, int]] = {}
        self.critical: dict[int, int] = defaultdict(int)
        for segment in path:
            self.critical[segment.event] += segment.time

    def weight(self, events: Iterable[int]) -> int:
        """Return the part of the critical path that these events take."""
        return sum(self.critical.get(number, 0) for number in events)

    def timed(
        self,
        name: str,
        text: str,
        events: Mapping[int, Timing],
        line: Line,
        *,
        estimated: bool = False,
    ) -> Question:
        """Return advice under which these events take other times."""
        change, weight = timed_change(events), self.weight(events)
        return Question(name, text, change, True, weight, line, estimated=estimated)

    def timing_on(self, event: Event, operands: Sequence[OperandRecord]) -> Timing:
        """Return the time of the event's instruction on other operands."""
        record, stream = event.record._replace(operands=tuple(operands)), self.stream(event)
        assert record.row is not None
        facts = self.trace.executable.facts(record, self.trace.target, stream.engine)
        return timing(record.row, facts, stream.engine, stream.queue)

    def facts(self, event: Event, engine: Engine | None = None) -> Facts:
        """Return an event's instruction, on its own engine or on another one, as the table's
        functions see it.
        """
        engine = engine or self.engine(event)
        return self.trace.executable.facts(event.record, self.trace.target, engine)

    def instructions(self) -> Iterator[tuple[int, Event, Row]]:
        """Yield all events but empty slots."""
        for number, event in enumerate(self.trace.events):
            if event.record.row is not None:
                yield number, event, event.record.row

    def transfers(self) -> Iterator[tuple[int, Event]]:
        for number, event, _ in self.instructions():
            if self.engine(event) is Engine.DMA:
                yield number, event

    def stream(self, event: Event) -> StreamRecord:
        return self.trace.streams[event.stream]

    def engine(self, event: Event) -> Engine:
        return self.stream(event).engine

    def line(self, event: Event) -> Line:
        return self.accounts.lines.of(event.record.place)

    def loaded(self, event: Event) -> PatternRecord | None:
        """Return the part of an input that a transfer loads on chip; None for other transfers."""
        tensors = self.trace.executable.tensors
        reads = [u for u in self.accounts.uses_of(event) if u.reads]
        if len(reads) != 1 or reads[0].pattern.dynamic is not None:
            return None
        tensor = tensors[reads[0].tensor]
        is_input = tensor.buffer in HBM and tensor.role in ("input", "constant")
        return reads[0].pattern if is_input else None

    def iterations(self, event: Event) -> dict[str, int]:
        """Return the iterations of the Python loops that made the event, outermost first."""
        index = event.record.iterations
        if index not in self._iterations:
            text = self.trace.executable.iterations[index] if index >= 0 else ""
            pairs = (part.partition("=") for part in text.split())
            self._iterations[index] = {
                name: number if value[:1] != "-" else -number
                for name, _, value in pairs
                if (number := whole_number(value.removeprefix("-"))) is not None
            }
        return self._iterations[index]

    @cached_property
    def dependences(self) -> list[Edge]:
        return edges(self.trace, self.accounts.uses)

    @cached_property
    def by_slots(self) -> list[tuple[int, int]]:
        """Return the edges of empty slots: the order of loop iterations, as in the program."""
        events = self.trace.events
        return [
            (token, number)
            for number, event in enumerate(events)
            for token in event.tokens
            if event.record.row is None or events[token].record.row is None
        ]

    @cached_property
    def original(self) -> Change:
        """The run as it was, by its dependences instead of its semaphores."""
        return wired(self.dependences, self.by_slots)


def wired(dependences: Iterable[Edge], by_slots: list[tuple[int, int]]) -> Change:
    return Change(wires=sorted({*by_slots, *((edge.before, edge.after) for edge in dependences)}))


def patterns_of(record: InstructionRecord) -> list[PatternRecord]:
    return [operand for operand in record.operands if isinstance(operand, PatternRecord)]


def bytes_of(pattern: PatternRecord) -> int:
    return pattern.elements * pattern.dtype.size


# ------------------------------------------------------------------------------------------------
# Instructions that another one could do in passing: sums of products in PSUM, and reductions.


def named(subject: Subject, event: Event) -> tuple[dict[str, PatternRecord], Mapping[str, object]]:
    row = event.record.row
    assert row is not None
    operands = zip(row.operand_index, event.record.operands, strict=False)
    patterns = {name: value for name, value in operands if isinstance(value, PatternRecord)}
    return patterns, dict(zip(row.attribute_index, event.record.attributes, strict=True))


def accumulated(subject: Subject) -> Iterator[Question]:
    """Ask about sums of products that a vector instruction adds, one product after the other.

    PSUM adds without cost. One copy is left for each sum.
    """
    tensors = subject.trace.executable.tensors
    products: set[int] = set()
    sums: dict[PatternRecord, list[int]] = defaultdict(list)
    for number, event, row in subject.instructions():
        if row.operations is not None:
            products |= {use.tensor for use in subject.accounts.uses_of(event) if use.writes}
        elif is_addition(row, (found := named(subject, event))[1]):
            patterns, _ = found
            first, second, dst = (patterns.get(name) for name in ("data1", "data2", "dst"))
            added = second if first == dst else first if second == dst else None
            if dst is None or added is None:
                continue
            if tensors[added.tensor].buffer is Buffer.PSUM and added.tensor in products:
                sums[dst].append(number)
    sums = {dst: numbers for dst, numbers in sums.items() if len(numbers) > 1}
    rows = [4 * dst.elements // max(1, dst.partitions) for dst in sums]
    banks = max((-(-row // PSUM_BANK_BYTES) for row in rows), default=1)
    alive = levels((numbers[0], numbers[-1] + 1, banks) for numbers in sums.values())
    if not sums or max(level for _, level in alive) > subject.trace.target.psum_banks:
        return
    events = {number: FREE for numbers in sums.values() for number in numbers[:-1]}
    line = subject.line(subject.trace.events[min(events)])
    text = (
        f"add the products of {line.short} in PSUM, not with tensor_tensor: declare one PSUM tile "
        "before the loop, pass `accumulate=(k > 0)` to nc_matmul with the loop's own counter, and "
        "copy the tile once after the loop"
    )
    yield subject.timed(f"accumulate:{line}", text, events, line)


def fused(subject: Subject) -> Iterator[Question]:
    """Ask about sums over the columns of a tile that an activation, or a square, has just made."""
    writers: dict[int, int] = {}
    events: dict[tuple[Line, Line, bool], dict[int, Timing]] = defaultdict(dict)
    for number, event, row in subject.instructions():
        made = _reduced(subject, event, row, writers)
        if made is not None:
            before = subject.trace.events[made[0]]
            events[subject.line(before), subject.line(event), made[1]][number] = FREE
        for use in subject.accounts.uses_of(event):
            if use.writes:
                writers[use.tensor] = number
    for (first, second, is_square), timings in events.items():
        results = "the squares" if is_square else "the results"
        given = {"dst": "…", "data1": "…"} if is_square else {"dst": "…", "op": "…", "data": "…"}
        call = adding_up(given, "…", "nisa", "nl")
        text = f"make {results} of {first.short} and the sum of {second.short} at once: `{call}`"
        yield subject.timed(f"fuse:{first}:{second.number}", text, timings, first)


def _reduced(
    subject: Subject, event: Event, row: Row, writers: Mapping[int, int]
) -> tuple[int, bool] | None:
    """Return the event that made what this one adds up, and whether it multiplied a tile by itself;
    None if it is something else.
    """
    patterns, attributes = named(subject, event)
    if not is_sum_of_columns(row, attributes):
        return None
    data, dst = patterns["data"], patterns["dst"]
    before = writers.get(data.tensor)
    if before is None or dst.elements != dst.partitions:
        return None
    maker = subject.trace.events[before]
    made, given = named(subject, maker)
    if made.get("dst") != data or maker.record.row is None:
        return None
    if may_add_up(maker.record.row, given):
        return before, False
    is_square = is_multiplication(maker.record.row, given) and made["data1"] == made["data2"]
    return (before, True) if is_square else None


def at_once(subject: Subject) -> Iterator[Question]:
    """Ask about results of tensor_scalar of which another instruction is the only reader, and could
    do its work as well. An estimate: that instruction may take longer.
    """
    events: dict[tuple[Line, Line], dict[int, Timing]] = defaultdict(dict)
    calls: dict[tuple[Line, Line], str] = {}
    for first, second in _read_once(subject):
        maker, reader = (subject.trace.events[number] for number in (first, second))
        row, next_row = maker.record.row, reader.record.row
        assert row is not None and next_row is not None
        (made, given), (read, then) = named(subject, maker), named(subject, reader)
        names = [n for n, pattern in read.items() if n != "dst" and pattern == made["dst"]]
        if len(names) != 1:
            continue
        facts = subject.facts(reader)
        after = {**facts.operands, **then}
        found = joined(row.name, given, next_row.name, after, names[0])
        if found is not None and _is_legal(subject.facts(maker), facts, found):
            lines = subject.line(maker), subject.line(reader)
            events[lines][first] = FREE
            kept = {"dst": "…"} | ({"op": "…"} if next_row.name == ACTIVATION else {})
            calls[lines] = f"`{joining(found, {}, kept, 'nisa')}`"
            if NEGATED in found[1].values() and "operand0" in made:
                calls[lines] += "; multiply the operand by -1 first, or let tensor_reduce `negate`"
            elif NEGATED in found[1].values():
                calls[lines] += "; the constant has the other sign there"
    for (before, behind), timings in events.items():
        both = f"{before.short} and {behind.short} do"
        what = f"{before.short} does in two instructions" if before == behind else both
        text = f"do at once what {what}: {calls[before, behind]}"
        name = f"join:{before}:{behind.number}"
        yield subject.timed(name, text, timings, before, estimated=True)


def _is_legal(first: Facts, then: Facts, found: tuple[str, Mapping[str, str]]) -> bool:
    """Whether one instruction may do what two do: between them, integers are cut off."""
    row, taken = ROWS[found[0]], found[1]
    made, values = {**first.operands, **first.attributes}, {**then.operands, **then.attributes}
    for key, value in taken.items():
        name = value.removeprefix("then ").removeprefix("-")
        values[key] = (values if value.startswith("then ") else made)[name]
    attributes = {each.name: values.get(each.name, each.default) for each in row.attributes}
    operands = {name: values.get(name) for name in row.operand_index}
    joint = Facts(then.target, operands, attributes)
    return first.tile("dst").dtype.kind == "float" and not violations(row, joint)


def _read_once(subject: Subject) -> Iterator[tuple[int, int]]:
    """Yield each tensor_scalar that fills a tile which is read once, with the event that does."""
    tensors = subject.trace.executable.tensors
    filled: dict[int, int] = {}
    readers: dict[int, list[int]] = {}
    for number, event, _ in subject.instructions():
        uses = subject.accounts.uses_of(event)
        for use in uses:
            if use.reads and use.tensor in filled:
                readers[filled[use.tensor]].append(number)
        for use in uses:
            if use.writes and use.pattern.elements == prod(tensors[use.tensor].shape):
                filled[use.tensor] = number
                readers[number] = []
            elif use.writes:
                readers.pop(filled.pop(use.tensor, -1), None)
    for number, found in readers.items():
        row = subject.trace.events[number].record.row
        if len(found) == 1 and row is not None and row.name == WITH_SCALARS:
            yield number, found[0]


# ------------------------------------------------------------------------------------------------
# Transfers of one line that could be coalesced: they move adjacent columns of the same tensors.

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
            for tensor in dict.fromkeys(each.tensor for each in patterns_of(event.record)):
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


def times(subject: Subject, chain: Chain, is_first: bool = False) -> dict[int, Timing]:
    """Return timings in which the last or first transfer does the work of all, the others none."""
    choose = min if is_first else max
    number, event, _ = choose(chain, key=lambda transfer: transfer.number)
    wide = [_widened(pattern, len(chain)) for pattern in chain[0].patterns]
    timings = {transfer.number: FREE for transfer in chain}
    return timings | {number: subject.timing_on(event, wide)}


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
    patterns = patterns_of(record)
    is_plain = all(
        pattern.dynamic is None and pattern.dims and pattern.dims[-1][0] == 1
        for pattern in patterns
    )
    return patterns if is_plain and len(patterns) == len(record.operands) == 2 else None


def _widened(pattern: PatternRecord, count: int) -> PatternRecord:
    *outer, (step, num) = pattern.dims
    return pattern._replace(dims=(*outer, (step, num * count)))


# ------------------------------------------------------------------------------------------------
# Tiles of another shape: whole rows instead of pieces, and products with swapped operands.
# All are estimates: another shape changes which instruction waits for which.

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
    most: dict[Line, Chain] = {}
    for line, chain in pieces(loads):
        timings[line] |= times(subject, chain, is_first=True)
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
    for number, event, _ in subject.instructions():
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
        around = names[:-1]
        is_alone = not any(each[: len(around)] == around for each in loops if each != names)
        working = _working(subject, events, values, count, is_alone)
        kept = set(working.values())
        timings = {
            number: _widened_tile(subject, event, count) if number in kept else FREE
            for number, event in events
        }
        line = subject.line(events[0][1])
        text = (
            f"work on {width * count:,} columns at once in the loop over {names[-1]} "
            f"({line.short}), not on {width}: every instruction has its own start-up, and every "
            "transfer its trigger"
        )
        name = f"larger-tiles:{line}:{width}:{count}"
        question = subject.timed(name, text, timings, line, estimated=True)
        wires = {
            (working.get(before, before), working.get(after, after))
            for before, after in subject.original.wires or ()
        }
        ordered = sorted((before, after) for before, after in wires if before < after)
        yield replace(
            question, change=replace(question.change, wires=ordered), given=subject.original
        )


def _working(
    subject: Subject,
    events: Iterable[tuple[int, Event]],
    values: list[int],
    count: int,
    is_alone: bool,
) -> dict[int, int]:
    """Return by event of a loop the one that does its work if an iteration does that of `count`.

    The first iterations do it, of the whole nest if nothing else is in it and of each round of the
    outer loops otherwise: so many tiles are still loaded ahead as in the run.
    """
    rounds: dict[tuple[int, ...], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, event in events:
        *outer, value = subject.iterations(event).values()
        rounds[tuple(outer)][values.index(value)].append(number)
    every = [found[index] for found in rounds.values() for index in range(len(values))]
    kept = len(values) // count
    working: dict[int, int] = {}
    for i, numbers in enumerate(every):
        ahead, index = divmod(i, len(values))
        first = ahead * (kept if is_alone else len(values))
        working |= dict(zip(numbers, every[first + index % kept], strict=False))
    return working


def _width(subject: Subject, events: list[tuple[int, Event]], name: str, values: list[int]) -> int:
    """Return the columns of the tiles of a loop; 0 if its iterations cannot be joined."""
    widths: set[int] = set()
    starts: dict[tuple[object, ...], dict[int, int]] = defaultdict(dict)
    tensors = subject.trace.executable.tensors
    for _, event in events:
        row, loops = event.record.row, subject.iterations(event)
        patterns = patterns_of(event.record)
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


def _widened_tile(subject: Subject, event: Event, count: int) -> Timing:
    """Return the time of an instruction on so many tiles side by side."""
    wide = [
        _widened(operand, count)
        if isinstance(operand, PatternRecord) and operand.elements > operand.partitions
        else operand
        for operand in event.record.operands
    ]
    return subject.timing_on(event, wide)


# ---- swapped operands ---------------------------------------------------------------------------


def swapped(subject: Subject) -> Iterator[Question]:
    """Ask about products whose wider operand is the moving one: several may take less time."""
    before: dict[Line, int] = defaultdict(int)
    timings: dict[Line, dict[int, Timing]] = defaultdict(dict)
    for number, event, row in subject.instructions():
        changed = _swapped(subject, event, row) if row.name == PRODUCT else None
        if changed is not None:
            before[subject.line(event)] += changed[0].hold
            timings[subject.line(event)][number] = changed[1]
    for line, events in timings.items():
        if sum(each.hold for each in events.values()) > SWAPPED * before[line]:
            continue
        text = (
            f"swap the operands of {line.short}: its stationary one uses few of the 128 columns, "
            "so pass 128 columns of the other one as stationary, and this one as moving; the "
            "result is transposed"
        )
        yield subject.timed(f"swap:{line}", text, events, line, estimated=True)


def _swapped(subject: Subject, event: Event, row: Row) -> tuple[Timing, Timing] | None:
    """Return the times of a product and of those that replace it; None for other shapes."""
    facts = subject.facts(event)
    stationary, moving = facts.tile("stationary"), facts.tile("moving")
    if len(moving.dims) != 1 or len(stationary.dims) != 1:
        return None
    step, columns = moving.dims[0]
    part = moving._replace(dims=((step, min(columns, PARTITIONS)),))
    operands = {**facts.operands, "stationary": part, "moving": stationary}
    changed = Facts(facts.target, operands, facts.attributes, Engine.TENSOR)
    one = timing(row, changed, Engine.TENSOR)
    count = -(-columns // PARTITIONS)
    many = one._replace(hold=one.hold * count, cold=one.cold * count)
    return timing(row, facts, Engine.TENSOR), many


# ------------------------------------------------------------------------------------------------
# Transfers that another engine could trigger, while the one that does is the bottleneck.

MOST_LINES = 2  # lines whose transfers are tried
MOST_HELD = 0.6  # share of all triggers from which a line is shared between engines


def triggers(subject: Subject) -> Iterator[Question]:
    """Ask about triggering the transfers of one line from another engine, if triggers take a part
    of the critical path.

    Only one line's, since all of them would make the other engine the bottleneck instead.
    """
    weight = sum(segment.time for segment in subject.path if segment.spent is Spent.TRIGGER)
    if not weight:
        return
    by_line: dict[Line, list[int]] = defaultdict(list)
    held: dict[Line, int] = defaultdict(int)
    for number, event in subject.transfers():
        line = subject.line(event)
        by_line[line].append(number)
        held[line] += event.trigger
    for line in sorted(held, key=lambda each: (-held[each], each))[:MOST_LINES]:
        for engine, attributes, added in TRIGGERS:
            timings = _triggered(subject, by_line[line], attributes)
            if timings:
                text = f"trigger {line.short} from the {engine} engine: add `{added}`"
                name, change = f"trigger-{engine}:{line}", timed_change(timings)
                yield Question(name, text, change, True, weight, line, adds=added)
        if held[line] > MOST_HELD * sum(held.values()):
            yield from _in_turn(subject, line, by_line[line], weight)


def _in_turn(subject: Subject, line: Line, numbers: list[int], weight: int) -> Iterator[Question]:
    """Ask about triggering every second transfer of a line from the scalar engine."""
    loops = [subject.iterations(subject.trace.events[number]) for number in numbers]
    name = next(reversed(loops[0]), "")
    values = sorted({loop[name] for loop in loops if name in loop})
    if len(values) < MOST_LINES:
        return
    step = values[1] - values[0]
    odd = [n for n, loop in zip(numbers, loops, strict=True) if loop.get(name, 0) // step % 2]
    timings = _triggered(subject, odd, TRIGGERS[0][1])
    if not timings:
        return
    counter = f"{name} // {step}" if step > 1 else name
    added = in_turn(counter)
    text = f"trigger {line.short} from the scalar and the sync engine in turn: add `{added}`"
    name, change = f"trigger-in-turn:{line}", timed_change(timings)
    yield Question(name, text, change, True, weight, line, adds=added)


def _triggered(
    subject: Subject, numbers: list[int], attributes: dict[str, str]
) -> dict[int, Timing] | None:
    """Return the timings of transfers with these attributes; None if illegal, or without change."""
    known: dict[tuple[int, int], Timing | None] = {}
    timings: dict[int, Timing] = {}
    for number in numbers:
        event = subject.trace.events[number]
        key = (id(event.record), event.stream)
        if key not in known:
            known[key] = _changed(subject, event, attributes)
        changed = known[key]
        if changed is None:
            return None
        timings[number] = changed
    return timings


def _changed(subject: Subject, event: Event, attributes: dict[str, str]) -> Timing | None:
    row = event.record.row
    assert row is not None
    if not attributes.keys() <= row.attribute_index.keys():
        return None
    facts = subject.facts(event)
    changed = {**facts.attributes, **attributes}
    facts = Facts(facts.target, facts.operands, changed, facts.engine)
    if any(rule(facts) is not None for rule in row.rules):
        return None
    found = timing(row, facts, Engine.DMA, subject.stream(event).queue)
    return found if found.by is not event.triggered_by else None
