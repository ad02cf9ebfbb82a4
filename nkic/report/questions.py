"""Hypothetical changes to a run, each as a change of the trace; simulating them again tells their
gain.

An *advice* is a change that the kernel's author can make. A *limit* is the cost of a part of the
machine: it cannot be removed, but if removing it gains nothing, it is not the bottleneck.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from nkic.artifact.events import Cause, Change, Event
from nkic.artifact.records import PatternRecord, StreamRecord
from nkic.base.diagnostics import code
from nkic.base.text import size
from nkic.machine.dtypes import DTYPES
from nkic.machine.operands import Facts, Tile
from nkic.machine.patterns import run
from nkic.machine.rules import violations
from nkic.machine.targets import PARTITIONS, SHORT_NAMES, Buffer, Engine
from nkic.machine.timing import Timing, timing
from nkic.report.costs import Accounts, LiveRange, Relation, edges, peak
from nkic.report.critical import Line, Segment, Spent
from nkic.report.shorter import (
    FREE,
    Accesses,
    Question,
    Subject,
    accumulated,
    at_once,
    bytes_of,
    chains,
    fused,
    larger,
    patterns_of,
    swapped,
    timed_change,
    times,
    triggers,
    wider,
    wired,
)

# ------------------------------------------------------------------------------------------------
# Inputs that are loaded again: whole ones that could stay in SBUF, or else blocks of a loop.

BLOCKS = (1, 2, 4, 8)
ROOM = 0.75  # of SBUF, for the tiles of a block: others are loaded meanwhile
Group = tuple[str, int | None]  # a loop, and the iteration that a tile would be kept for


@dataclass
class _Loads:
    """The loads of one input, by the part that they load."""

    tensor: int
    name: str
    events: dict[PatternRecord, list[int]] = field(default_factory=lambda: defaultdict(list))

    @property
    def all(self) -> list[int]:
        return [number for numbers in self.events.values() for number in numbers]

    @property
    def bytes(self) -> int:
        """The bytes that are loaded at least once."""
        return sum(map(bytes_of, self.events))

    @property
    def repeats(self) -> dict[int, Timing]:
        """All but the first load of each part, without time."""
        return {number: FREE for numbers in self.events.values() for number in numbers[1:]}


def reuse(subject: Subject) -> Iterator[Question]:
    """Ask about repeated loads: kept if there is memory, else used for several iterations."""
    found: dict[int, _Loads] = {}
    for number, event in subject.transfers():
        pattern = subject.loaded(event)
        if pattern is not None:
            name = subject.trace.executable.tensors[pattern.tensor].name
            loads = found.setdefault(pattern.tensor, _Loads(pattern.tensor, name))
            loads.events[pattern].append(number)
    repeated = [found[tensor] for tensor in sorted(found) if found[tensor].repeats]
    live = peak(subject.live_ranges, Buffer.SBUF).bytes
    free = subject.accounts.target.sbuf_usable * PARTITIONS - live
    fitting = [loads for loads in repeated if loads.bytes <= free]
    sets = [[loads] for loads in fitting]
    if len(fitting) > 1 and sum(loads.bytes for loads in fitting) <= free:
        sets.append(fitting)
    for each in sets:
        yield _once(subject, each)
    for loads in repeated:
        if loads not in fitting:
            yield from _once_for_each(subject, loads, free)
    if len(fitting) < len(repeated) or sum(loads.bytes for loads in fitting) > free:
        yield from _blocked(subject, list(found.values()))


def _once(subject: Subject, sets: Sequence[_Loads]) -> Question:
    events = {number: FREE for loads in sets for number in loads.repeats}
    names = [loads.name for loads in sets]
    text = (
        f"load {' and '.join(names)} once and keep {'it' if len(names) == 1 else 'them'} in "
        f"SBUF ({size(sum(loads.bytes for loads in sets))}): {_again(subject, events)}"
    )
    return _not_again(subject, ",".join(names), text, events)


def _once_for_each(subject: Subject, loads: _Loads, free: int) -> Iterator[Question]:
    """Ask about loading a part once for each iteration of the outermost loop that repeats it."""
    parts: dict[tuple[Group, PatternRecord], list[int]] = defaultdict(list)
    for pattern, numbers in loads.events.items():
        for number in numbers:
            loops = subject.iterations(subject.trace.events[number])
            parts[next(iter(loops.items()), ("", None)), pattern].append(number)
    kept: dict[Group, int] = defaultdict(int)
    events: dict[int, Timing] = {}
    for (group, pattern), numbers in parts.items():
        if len(numbers) > 1:
            kept[group] += bytes_of(pattern)
            events |= dict.fromkeys(numbers[1:], FREE)
    loop = next(iter(kept), ("", None))[0]
    if not events or not loop or max(kept.values()) > free:
        return
    text = (
        f"load {loads.name} once for each {loop} and keep it in SBUF "
        f"({size(max(kept.values()))}): {_again(subject, events)}"
    )
    yield _not_again(subject, loads.name, text, events)


def _not_again(subject: Subject, names: str, text: str, events: Mapping[int, Timing]) -> Question:
    """Return the advice to keep inputs, so that these transfers need not load them again."""
    lines = _lines(subject, events)
    first = subject.line(subject.trace.events[min(events)])
    return replace(subject.timed(f"load-once:{names}", text, events, first), loads=lines)


def _lines(subject: Subject, events: Iterable[int]) -> tuple[Line, ...]:
    """Return the lines of the kernel that make these transfers, or call what makes them; none if
    other lines write the same tiles, which then must be loaded again.
    """
    outer, made = subject.accounts.lines.outer, subject.trace.events
    lines = {outer(made[number].record.place) for number in events}
    written: dict[bool, set[int]] = {True: set(), False: set()}
    for event in made:
        tiles = {use.tensor for use in subject.accounts.uses_of(event) if use.writes}
        written[outer(event.record.place) in lines] |= tiles
    return () if written[True] & written[False] else tuple(sorted(lines))


def _again(subject: Subject, events: dict[int, Timing]) -> str:
    return f"{size(sum(subject.trace.events[number].bytes for number in events))} are loaded again"


# ---- blocks of a loop -----------------------------------------------------------------------


@dataclass(frozen=True)
class _Loop:
    """A loop whose iterations load an input again, and need `beside` bytes of others each."""

    loads: _Loads
    name: str
    values: tuple[int, ...]
    depth: int
    beside: int

    @property
    def step(self) -> int:
        return self.values[1] - self.values[0]

    def outer(self, block: int) -> str:
        stop = self.values[-1] + self.step
        return f"for {self.name} in range({self.values[0]}, {stop}, {self.step * block})"

    def inner(self, block: int) -> str:
        name = self.name
        return f"for {name}{name} in range({name}, {name} + {self.step * block}, {self.step})"


def _blocked(subject: Subject, found: Sequence[_Loads]) -> Iterator[Question]:
    """Ask about using each load for several iterations of a loop, since not all operands fit.

    That many results are open at a time: no more than PSUM has banks. A load that serves several
    iterations is shared equally between them, which is an estimate: in the kernel it comes before
    them.
    """
    loops = [loop for loads in found if (loop := _loop(subject, loads, found)) is not None]
    loops.sort(key=lambda loop: loop.depth)
    if not loops or len({loop.name for loop in loops}) < len(loops):
        return
    target = subject.accounts.target
    ways = [
        way
        for way in itertools.product(BLOCKS, repeat=len(loops))
        if prod(way) <= target.psum_banks
        and all(len(loop.values) % block == 0 for loop, block in zip(loops, way, strict=True))
        and sum(loop.beside * block for loop, block in zip(loops, way, strict=True) if block > 1)
        <= ROOM * target.sbuf_usable * PARTITIONS
    ]
    best = min(ways, key=lambda way: (_moved(subject, loops, way), sum(way)), default=())
    if prod(best) <= 1:
        return
    chosen = [(loop, block) for loop, block in zip(loops, best, strict=True) if block > 1]
    shares = {number: block for loop, block in chosen for number in loop.loads.all}
    again = sum(subject.trace.events[n].bytes for loop, _ in chosen for n in loop.loads.repeats)
    uses = " and ".join(f"{loop.loads.name} for {block} {loop.name}" for loop, block in chosen)
    outer = ": ".join(loop.outer(block) for loop, block in chosen)
    inner = ": ".join(loop.inner(block) for loop, block in chosen)
    text = (
        f"block the loops, to use each load of {uses}: {size(again)} are loaded again "
        f"(`{outer}`, load a block in one transfer, `{inner}`, multiply)"
    )
    line = subject.line(subject.trace.events[min(shares)])
    blocks = ",".join(f"{loop.name}*{block}" for loop, block in chosen)
    lines = _lines(subject, shares)
    change, weight = _shared(shares, prod(best)), subject.weight(shares)
    yield Question(f"block:{blocks}", text, change, True, weight, line, estimated=True, loads=lines)


def _moved(subject: Subject, loops: Sequence[_Loop], way: Sequence[int]) -> float:
    """Return the bytes that are loaded if each loop has a block of that size."""
    events = subject.trace.events
    return sum(
        sum(events[number].bytes for number in loop.loads.all) / block
        for loop, block in zip(loops, way, strict=True)
    )


def _loop(subject: Subject, loads: _Loads, found: Sequence[_Loads]) -> _Loop | None:
    """Return the outermost loop that the loads do not depend on, if its steps are equal."""
    seen = [
        [subject.iterations(subject.trace.events[number]) for number in numbers]
        for numbers in loads.events.values()
        if len(numbers) > 1
    ]
    for depth, name in enumerate(seen[0][0] if seen else ()):
        if len({each.get(name) for each in seen[0]}) > 1:
            values = tuple(sorted({each[name] for loops in seen for each in loops if name in each}))
            steps = {after - before for before, after in itertools.pairwise(values)}
            beside = sum(_each(subject, other, name) for other in found if other is not loads)
            return _Loop(loads, name, values, depth, beside) if len(steps) == 1 else None
    return None


def _each(subject: Subject, loads: _Loads, name: str) -> int:
    """Return the most bytes of an input that one iteration of a loop loads."""
    sizes: dict[int, int] = defaultdict(int)
    for pattern, numbers in loads.events.items():
        events = (subject.trace.events[number] for number in numbers)
        for value in {subject.iterations(event).get(name, 0) for event in events}:
            sizes[value] += bytes_of(pattern)
    return max(sizes.values(), default=0)


def _shared(shares: dict[int, int], block: int) -> Change:
    """Return a change under which each of these loads takes its part of the time: that of the
    bytes by how often they are used, that of the trigger by the tiles of a block.
    """

    def retimed(number: int, event: Event, original: Timing) -> Timing:
        share = shares.get(number)
        if share is None:
            return original
        hold, latency, start, pool, trigger, *_ = original
        return original._replace(
            hold=hold // share,
            pool=pool // share,
            latency=latency // block,
            start=start // block,
            trigger=trigger // block,
        )

    return Change(retimed=retimed)


# --------------------------------------------------------------------------------------------------

SMALL_ROW, TINY_ROW = 512, 64  # bytes; check warns of shorter rows: NKI0630 and NKI0632
SHORT_ROW_COST = 1.15  # time relative to the full rate from which short rows are reported


def questions(
    accounts: Accounts, path: list[Segment], live_ranges: list[LiveRange]
) -> list[Question]:
    """Return the questions for this run, greatest weight first.

    Events off the critical path are left out, because changing them would gain nothing.
    """
    source = _Questions(accounts, path, live_ranges)
    candidates = [
        *reuse(source),
        *triggers(source),
        *accumulated(source),
        *fused(source),
        *at_once(source),
        *wider(source),
        *larger(source),
        *swapped(source),
        *source.long_rows(),
        *source.fewer_transfers(),
        *source.narrow_products(),
        *source.memory(),
        *source.elsewhere(),
        *source.tables(),
        *source.free(),
    ]
    return sorted(
        (question for question in candidates if question.weight),
        key=lambda candidate: (-candidate.weight, candidate.name),
    )


BUSY = 0.6  # share of the time for which an engine works, from which another one could help
MOST_MOVED = 3  # lines that are tried on other engines
# Not gpsimd: it shares a port to SBUF with vector, and no public figure says what that costs.
OTHERS = (Engine.SCALAR, Engine.VECTOR)


class _Questions(Subject):
    # Advice

    def long_rows(self) -> Iterator[Question]:
        """Ask about transfers of short rows, at the rate of long ones."""
        rate = self.accounts.target.peak_rate
        full = self.accounts.target.figures["dma.descriptor_bytes"]
        by_line: dict[Line, dict[int, int]] = defaultdict(dict)
        rows: dict[Line, int] = {}
        for number, event in self.transfers():
            best = round(event.bytes * 1000 / rate)
            row = min(run(p.dims) * p.dtype.size for p in patterns_of(event.record))
            if best and event.pool > SHORT_ROW_COST * best and row < self._longest_row(event):
                line = self.line(event)
                by_line[line][number] = best
                rows[line] = min(rows.get(line, 1 << 62), row)
        for line, events in by_line.items():
            text = (
                f"move longer rows in {line.short}: its rows have {rows[line]} bytes, but DMA "
                f"needs {full:.0f} for its full rate"
            )
            change, weight = _at_full_rate(events), self.weight(events)
            warning = _warning(rows[line])
            yield Question(f"long-rows:{line}", text, change, True, weight, line, code=warning)

    def _longest_row(self, event: Event) -> int:
        """Return the bytes in HBM for each partition of a transfer: no row of it can have more."""
        patterns = patterns_of(event.record)
        tensors = [self.trace.executable.tensors[pattern.tensor] for pattern in patterns]
        sizes = [tensor.bytes for tensor in tensors if not tensor.buffer.on_chip]
        return min(sizes, default=0) // max(1, *(pattern.partitions for pattern in patterns))

    def fewer_transfers(self) -> Iterator[Question]:
        """Ask about transfers of adjacent columns, coalesced into one."""
        events: dict[Line, dict[int, Timing]] = defaultdict(dict)
        counts: dict[Line, int] = defaultdict(int)
        accesses = Accesses(self.trace)
        for line, chain in chains((self.line(e), n, e) for n, e in self.transfers()):
            if not accesses.none_between(chain):
                continue
            events[line] |= times(self, chain)
            counts[line] = max(counts[line], len(chain))
        for line, timings in events.items():
            text = (
                f"move in one transfer what {line.short} moves in {counts[line]:,}: they are "
                "adjacent, and each pays for its own trigger and latency"
            )
            yield self.timed(f"fewer-transfers:{line}", text, timings, line)

    def narrow_products(self) -> Iterator[Question]:
        """Ask about products of float32 tiles, computed in bfloat16."""
        events: dict[int, Timing] = {}
        timings: dict[int, Timing | None] = {}
        for number, event in enumerate(self.trace.events):
            key = id(event.record)
            if key not in timings:
                timings[key] = self._narrowed(event)
            if (time := timings[key]) is not None:
                events[number] = time
        if events:
            text = (
                "multiply bfloat16, not float32: one pass of the tensor engine instead of four, "
                "and 8 bits of each operand's mantissa instead of 24"
            )
            question = self.timed("bf16", text, events, self.line(self.trace.events[min(events)]))
            yield replace(question, code=code("float32-matmul").number)

    def _narrowed(self, event: Event) -> Timing | None:
        """Return the time of a float32 product in bfloat16; None for other events."""
        row, engine = event.record.row, self.engine(event)
        if row is None or row.operations is None:
            return None
        facts = self.facts(event)
        narrow = {
            name: value._replace(dtype=DTYPES["bfloat16"])
            for name, value in facts.operands.items()
            if isinstance(value, Tile) and value.buffer is Buffer.SBUF
            if value.dtype.name == "float32"
        }
        if not narrow:
            return None
        narrowed = Facts(facts.target, {**facts.operands, **narrow}, facts.attributes, facts.engine)
        return timing(row, narrowed, engine)

    def memory(self) -> Iterator[Question]:
        """Ask about more memory for a line's tensors, so that nothing waits to overwrite them."""
        waits = self._waits_for_memory()
        if not waits:
            return
        tensors: dict[Line, set[int]] = defaultdict(set)
        for edge in self.dependences:
            if edge.relation is Relation.MEMORY:
                tensors[self._declared(edge.tensor)].add(edge.tensor)
        sets: dict[tuple[Line, ...], int] = {(line,): weight for line, weight in waits.items()}
        declared = Counter(map(self._declared, range(len(self.trace.executable.tensors))))
        single = sorted(line for line in tensors if line.number and declared[line] == 1)
        if len(single) > 1:
            sets[tuple(single)] = sum(waits.values())
        for lines, weight in sets.items():
            given = set().union(*(tensors[line] for line in lines))
            if not given or not self._has_room(given):
                continue
            others = [
                edge
                for edge in self.dependences
                if edge.relation is not Relation.MEMORY or self._declared(edge.tensor) not in lines
            ]
            first = sorted({self.trace.executable.tensors[tensor].name for tensor in given})
            names = ", ".join(first[:6]) + (", …" if len(first) > 6 else "")
            places = ",".join(
                str(line) if n == 0 else str(line.number) for n, line in enumerate(lines)
            )
            text = f"give {names} ({_listed_lines(lines)}) another buffer, to fill it earlier"
            if set(lines) <= set(single):
                text = (
                    f"declare {names} ({_listed_lines(lines)}) inside the loop, so that each "
                    "iteration has a tile of its own, and need not wait for the one before"
                )
            change = wired(others, self.by_slots)
            yield Question(f"buffers:{places}", text, change, True, weight, lines[0], self.original)
        data = [edge for edge in self.dependences if edge.relation is not Relation.MEMORY]
        text = "if nothing waited for free memory"
        weight = sum(waits.values())
        change = wired(data, self.by_slots)
        yield Question("free-memory", text, change, False, weight, None, self.original)

    def _has_room(self, tensors: set[int]) -> bool:
        """Whether memory has room for another one of these tensors at the run's peak."""
        target, records = self.trace.target, self.trace.executable.tensors
        rooms = {Buffer.SBUF: target.sbuf_usable, Buffer.PSUM: target.psum_bytes}
        for buffer, room in rooms.items():
            most: dict[Line, int] = defaultdict(int)  # of one tensor of each line
            for each in tensors:
                if records[each].buffer is buffer:
                    line = self._declared(each)
                    most[line] = max(most[line], records[each].bytes)
            live = peak(self.live_ranges, buffer).bytes // PARTITIONS
            if most and live + sum(most.values()) > room:
                return False
        return True

    def _waits_for_memory(self) -> dict[Line, int]:
        """Return the part of the critical path before waits for memory, by the line that declares
        the overwritten tensor.
        """
        waits: dict[Line, int] = defaultdict(int)
        for before, segment in itertools.pairwise(self.path):
            event = self.trace.events[segment.event]
            if event.cause is not Cause.SEMAPHORE or before.event == segment.event or event.is_late:
                continue
            if self.accounts.relation(event) is Relation.MEMORY:
                for use in self.accounts.uses_of(event):
                    if use.writes:
                        waits[self._declared(use.tensor)] += before.time
        return waits

    def _declared(self, tensor: int) -> Line:
        return self.accounts.lines.of(self.trace.executable.tensors[tensor].place)

    def elsewhere(self) -> Iterator[Question]:
        """Ask about running a line's instructions on another engine than the busiest one."""
        costs, cores = self.accounts.by_line.values(), max(1, self.trace.executable.cores)
        busy: dict[Engine, int] = {
            engine: sum(cost.busy.get(name, 0) for cost in costs)
            for engine, name in SHORT_NAMES.items()
            if engine is not Engine.DMA
        }
        busiest = max(busy, key=lambda each: busy[each])
        if busy[busiest] < BUSY * self.trace.end * cores:
            return
        by_line: dict[Line, list[int]] = defaultdict(list)
        for number, event, row in self.instructions():
            if self.engine(event) is busiest and "engine" in row.parameters:
                by_line[self.line(event)].append(number)
        weights = {line: self.weight(numbers) for line, numbers in by_line.items()}
        for line in sorted(weights, key=lambda each: (-weights[each], each))[:MOST_MOVED]:
            for engine in OTHERS:
                change = self._on(by_line[line], engine) if busy[engine] < busy[busiest] else None
                if change is not None:
                    adds = f"engine=nisa.engine.{engine.value}"
                    text = f"run {line.short} on the {engine.value} engine: pass `{adds}`"
                    name, weight = f"engine-{engine.value}:{line}", weights[line]
                    yield Question(name, text, change, True, weight, line, self.original, adds=adds)

    def _on(self, numbers: list[int], engine: Engine) -> Change | None:
        """Return the change in which an engine runs these events; None if it cannot."""
        events, streams = [*self.trace.events], [*self.trace.streams]
        times, moved, known = dict[int, Timing](), dict[int, int](), dict[int, Timing]()
        index = {(stream.core, stream.engine): i for i, stream in enumerate(streams)}
        for number in numbers:
            event, core = events[number], self.stream(events[number]).core
            if id(event.record) not in known:
                row, facts = event.record.row, self.facts(event, engine)
                if row is None or violations(row, facts):
                    return None
                if row.warn is not None and row.warn(facts, self.trace.executable.cores):
                    return None  # it computes something else there
                known[id(event.record)] = timing(row, facts, engine)
            if (core, engine) not in index:
                index[core, engine] = len(streams)
                streams.append(StreamRecord(core, engine, 0, ()))
            times[number], moved[number] = known[id(event.record)], index[core, engine]
            events[number] = event._replace(stream=moved[number])
        trace = replace(self.trace, events=tuple(events), streams=tuple(streams))
        wires = wired(edges(trace, self.accounts.uses), self.by_slots)
        retimed = timed_change(times).retimed
        return replace(wires, retimed=retimed, moved=moved, streams=streams)

    # Limits

    def tables(self) -> Iterator[Question]:
        """Ask about activation tables that load in no time."""
        weight = sum(segment.time for segment in self.path if segment.spent is Spent.TABLE)
        text = "if loading activation tables were free"
        yield Question("free-tables", text, Change(tables=False), False, weight)

    def free(self) -> Iterator[Question]:
        """Ask about each active engine taking no time, and about queues that never block."""
        by_engine: dict[Engine, list[int]] = defaultdict(list)
        for number, event, _ in self.instructions():
            by_engine[self.engine(event)].append(number)
        for engine, numbers in by_engine.items():
            name = SHORT_NAMES[engine]
            change = timed_change(dict.fromkeys(numbers, FREE))
            text = f"if {name} were free"
            yield Question(f"free-{name}", text, change, False, self.weight(numbers))
        triggers = sum(segment.time for segment in self.path if segment.spent is Spent.TRIGGER)
        text = "if triggering transfers were free"
        yield Question("free-triggers", text, Change(retimed=_untriggered), False, triggers)
        queued = sum(
            segment.time
            for segment in self.path
            if self.engine(event := self.trace.events[segment.event]) is Engine.DMA
            and event.cause is Cause.ENGINE
        )
        text = "if transfers did not wait for their queue"
        yield Question("more-queues", text, Change(retimed=_side_by_side), False, queued)


def _warning(row: int) -> str:
    """Return the code of the warning about rows of this many bytes."""
    if row >= SMALL_ROW:
        return ""
    return code("tiny-dma-rows" if row < TINY_ROW else "small-dma-rows").number


def _at_full_rate(best: Mapping[int, int]) -> Change:
    """Return a change under which these transfers hold the DMA engines for the given times only."""

    def retimed(number: int, event: Event, original: Timing) -> Timing:
        if number not in best:
            return original
        return original._replace(hold=min(original.hold, best[number]), pool=best[number])

    return Change(retimed=retimed)


def _listed_lines(lines: tuple[Line, ...]) -> str:
    return ", ".join([lines[0].short, *(str(line.number) for line in lines[1:])])


def _untriggered(number: int, event: Event, original: Timing) -> Timing:
    return original._replace(trigger=0)


def _side_by_side(number: int, event: Event, original: Timing) -> Timing:
    """Return the timing of a transfer that completes as late, but does not block its queue."""
    if not original.pool:
        return original
    return original._replace(hold=0, latency=original.latency + original.hold)
