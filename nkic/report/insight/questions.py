"""Hypothetical changes to a run, each as a change of the trace; simulating them again tells their
gain.

An *advice* is a change that the kernel's author can make. A *limit* is the cost of a part of the
machine: it cannot be removed, but if removing it gains nothing, it is not the bottleneck.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace

from nkic.base.diagnostics import code
from nkic.machine.dtypes import DTYPES
from nkic.machine.engines import SHORT_NAMES, Engine
from nkic.machine.facts import Facts, Tile
from nkic.machine.memory import PARTITIONS, Buffer
from nkic.machine.patterns import run
from nkic.machine.timing import Timing, timing
from nkic.neff.records import PatternRecord
from nkic.report.insight.costs import Accounts
from nkic.report.insight.critical import Segment, Spent
from nkic.report.insight.fusing import accumulated, fused
from nkic.report.insight.memory import LiveRange, peak
from nkic.report.insight.merging import Accesses, chains, times
from nkic.report.insight.relations import Edge, Relation, edges
from nkic.report.insight.reuse import reuse
from nkic.report.insight.sources import Line
from nkic.report.insight.subject import FREE, Question, Subject, timed_change
from nkic.report.insight.tiles import larger, swapped, wider
from nkic.report.insight.triggers import triggers
from nkic.trace import Cause, Change, Event

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
        *wider(source),
        *larger(source),
        *swapped(source),
        *source.long_rows(),
        *source.fewer_transfers(),
        *source.narrow_products(),
        *source.memory(),
        *source.tables(),
        *source.free(),
    ]
    return sorted(
        (question for question in candidates if question.weight),
        key=lambda candidate: (-candidate.weight, candidate.name),
    )


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
            row = row_bytes(event)
            if best and event.pool > SHORT_ROW_COST * best and row < self._longest_row(event):
                line = self.line(event)
                by_line[line][number] = best
                rows[line] = min(rows.get(line, 1 << 62), row)
        for line, events in by_line.items():
            text = (
                f"move longer rows in {line.short}: its rows have {rows[line]} bytes, but DMA "
                "needs "
                f"{full:.0f} for its full rate"
            )
            change, weight = _at_full_rate(events), self.weight(events)
            warning = _warning(rows[line])
            yield Question(f"long-rows:{line}", text, change, True, weight, line, code=warning)

    def _longest_row(self, event: Event) -> int:
        """Return the bytes in HBM for each partition of a transfer: no row of it can have more."""
        patterns = [o for o in event.record.operands if isinstance(o, PatternRecord)]
        tensors = [self.trace.executable.tensors[pattern.tensor] for pattern in patterns]
        sizes = [tensor.bytes for tensor in tensors if not tensor.buffer.on_chip]
        return min(sizes, default=0) // max(pattern.partitions for pattern in patterns)

    def fewer_transfers(self) -> Iterator[Question]:
        """Ask about transfers of adjacent columns, coalesced into one."""
        events: dict[Line, dict[int, Timing]] = defaultdict(dict)
        counts: dict[Line, int] = defaultdict(int)
        accesses = Accesses(self.trace)
        for line, chain in chains((self.line(e), n, e) for n, e in self.transfers()):
            if not accesses.none_between(chain):
                continue
            events[line] |= times(self.trace, chain)
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
        facts = self.trace.executable.facts(event.record, self.accounts.target, engine)
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
        """Ask about more memory for the tensors of a line, so that nothing waits to overwrite
        them.
        """
        waits = self._waits_for_memory()
        if not waits:
            return
        dependences, by_slots = edges(self.trace, self.accounts.uses), self._by_slots()
        original = _wired(dependences, by_slots)
        tensors: dict[Line, set[int]] = defaultdict(set)
        for edge in dependences:
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
                for edge in dependences
                if edge.relation is not Relation.MEMORY or self._declared(edge.tensor) not in lines
            ]
            names = _listed({self._name(tensor) for tensor in given})
            places = ",".join(
                str(line) if n == 0 else str(line.number) for n, line in enumerate(lines)
            )
            text = f"give {names} ({_listed_lines(lines)}) another buffer, to fill it earlier"
            if set(lines) <= set(single):
                text = (
                    f"declare {names} ({_listed_lines(lines)}) inside the loop, so that each "
                    "iteration has a tile of its own, and need not wait for the one before"
                )
            change = _wired(others, by_slots)
            yield Question(f"buffers:{places}", text, change, True, weight, lines[0], original)
        data = [edge for edge in dependences if edge.relation is not Relation.MEMORY]
        text = "if nothing waited for free memory"
        weight = sum(waits.values())
        yield Question("free-memory", text, _wired(data, by_slots), False, weight, None, original)

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

    def _name(self, tensor: int) -> str:
        return self.trace.executable.tensors[tensor].name

    def _by_slots(self) -> list[tuple[int, int]]:
        """Return the edges that empty slots impose: the order of loop iterations, as in the
        program.
        """
        events = self.trace.events
        return [
            (token, number)
            for number, event in enumerate(events)
            for token in event.tokens
            if event.record.row is None or events[token].record.row is None
        ]

    # Limits

    def tables(self) -> Iterator[Question]:
        """Ask about activation tables that load in no time."""
        weight = sum(segment.time for segment in self.path if segment.spent is Spent.TABLE)
        text = "if loading activation tables were free"
        yield Question("free-tables", text, Change(tables=False), False, weight)

    def free(self) -> Iterator[Question]:
        """Ask about each active engine taking no time, and about queues that never block."""
        by_engine: dict[Engine, list[int]] = defaultdict(list)
        for number, event in enumerate(self.trace.events):
            if event.record.row is not None:
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
    """Return a change under which these transfers use the DMA engines for no longer than the given
    time.
    """

    def retimed(number: int, event: Event, original: Timing) -> Timing:
        if number not in best:
            return original
        return original._replace(hold=min(original.hold, best[number]), pool=best[number])

    return Change(retimed=retimed)


def row_bytes(event: Event) -> int:
    """Return the bytes that are contiguous in memory on both sides of a transfer."""
    patterns = [o for o in event.record.operands if isinstance(o, PatternRecord)]
    return min(run(p.dims) * p.dtype.size for p in patterns)


def _listed_lines(lines: tuple[Line, ...]) -> str:
    return ", ".join([lines[0].short, *(str(line.number) for line in lines[1:])])


def _listed(names: set[str]) -> str:
    first = sorted(names)
    return ", ".join(first[:6]) + (", …" if len(first) > 6 else "")


def _wired(dependences: list[Edge], by_slots: list[tuple[int, int]]) -> Change:
    return Change(wires=sorted({*by_slots, *((edge.before, edge.after) for edge in dependences)}))


def _untriggered(number: int, event: Event, original: Timing) -> Timing:
    return original._replace(trigger=0)


def _side_by_side(number: int, event: Event, original: Timing) -> Timing:
    """Return the timing of a transfer that does not block its queue, and completes as late as
    before.
    """
    if not original.pool:
        return original
    return original._replace(hold=0, latency=original.latency + original.hold)
