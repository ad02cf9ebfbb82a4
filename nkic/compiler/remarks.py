"""The remarks of all stages of a finished compilation."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from nkic.base.diagnostics import Kind, Number, Remark, in_order, line_of
from nkic.base.text import plural, size
from nkic.compiler.allocate import (
    REST,
    Addresses,
    DoesNotFit,
    Lifetime,
    Ranges,
    Space,
    by_role,
    joined,
    lifetimes,
    most_at_once,
    place,
    space_of,
)
from nkic.compiler.compiled import Compiled
from nkic.compiler.schedule import ListScheduler, Orderer
from nkic.compiler.search import ScheduledProgram, Searched, Trial
from nkic.compiler.semaphores import FIRST_STREAM, engine_of, overlaps
from nkic.machine.patterns import run
from nkic.machine.rules import violations
from nkic.machine.targets import MEMORIES, PARTITIONS, SHORT_NAMES, Buffer, Engine, Target
from nkic.machine.timing import timing
from nkic.program.effects import Touch, touches_of
from nkic.program.program import (
    AccessPattern,
    Body,
    DependenceGraph,
    Edge,
    Instruction,
    Loop,
    Program,
    Schedule,
    Tensor,
    instructions,
)

# ------------------------------------------------------------------------------------------------
# Remarks on allocation: how tensors were placed, and which instructions wait for reused bytes.

ALLOCATE = "allocate"
NAMED = 3  # lines that a remark lists


def of_allocate(
    placed: Program, graphs: Sequence[DependenceGraph], rest: int = REST
) -> Iterator[Remark]:
    """Yield the remarks on the stage's output, and the `rest` that it was given."""
    for body, graph in zip(placed.cores, graphs, strict=True):
        for buffer in MEMORIES:
            space = space_of(buffer, placed.target)
            lives = lifetimes(body, placed.target, buffer)
            if lives:
                yield _strategy(lives, space, placed, rest)
                yield from _lines(lives, space, placed)
        yield from _reuse(body, graph)


def _strategy(lives: list[Lifetime], space: Space, placed: Program, rest: int) -> Remark:
    """Return how a memory was filled, and its peak use."""
    peak = most_at_once(lives, space.size)
    descriptions = (
        description
        for description, addresses in _in_order(lives, space, rest)
        if all(placed.addresses[number] == at for number, at in addresses.items())
    )
    description = next(descriptions, None)
    kind = Kind.PASSED if description is not None else Kind.MISSED
    description = (
        description
        or "by size, because they do not fit in program order: less of the kernel overlaps"
    )
    name = space.buffer.value.upper()
    text = (
        f"{name}: {plural(len(lives), 'tensor')} placed {description}; at most "
        f"{size(peak * PARTITIONS)} of {size(space.capacity * PARTITIONS)} hold data "
        "at one time in program order"
    )
    numbers: Mapping[str, Number] = {
        "memory": space.buffer.value,
        "tensors": len(lives),
        "peak_bytes": peak * PARTITIONS,
        "limit_bytes": space.capacity * PARTITIONS,
        "in_program_order": int(kind is Kind.PASSED),
    }
    return Remark(ALLOCATE, "placement", kind, lives[0].tensor.at, text, numbers)


def _in_order(
    lives: Sequence[Lifetime], space: Space, rest: int
) -> Iterator[tuple[str, Addresses]]:
    """Yield the placements in program order that fit: a description and the addresses."""
    with suppress(DoesNotFit):
        yield "in program order, oldest free slot first", place(lives, space, rest)
    if space.buffer is Buffer.PSUM:
        with suppress(DoesNotFit):
            description = "in program order, with separate banks for each declaration"
            yield description, by_role(lives, space)


def _lines(lives: Sequence[Lifetime], space: Space, placed: Program) -> Iterator[Remark]:
    """Yield, per declaring line, the number of tensors and of buffers."""
    by_line: dict[tuple[str, int], list[Tensor]] = defaultdict(list)
    for life in lives:
        by_line[line_of(life.tensor.at)].append(life.tensor)
    for tensors in by_line.values():
        first = tensors[0]
        starts = {placed.addresses[tensor.number] for tensor in tensors}
        low = min(at.byte for at in starts)
        high = max(placed.addresses[t.number].byte + t.bytes for t in tensors)
        text = (
            f"`{first.name}`: {plural(len(tensors), 'tensor')} of {size(first.bytes)} in each of "
            f"{plural(first.partitions, 'partition')}, in {plural(len(starts), 'buffer')} of "
            f"{space.buffer.value.upper()}{' in turn' * (len(starts) < len(tensors))}, bytes {low} "
            f"to {high}"
        )
        numbers: Mapping[str, Number] = {
            "memory": space.buffer.value,
            "tensors": len(tensors),
            "buffers": len(starts),
            "partition_bytes": first.bytes,
            "low_byte": low,
            "high_byte": high,
            "fixed": sum(tensor.fixed is not None for tensor in tensors),
        }
        yield Remark(ALLOCATE, "buffers", Kind.ANALYSIS, first.at, text, numbers)


def _reuse(body: Body, graph: DependenceGraph) -> Iterator[Remark]:
    """Yield the instructions that wait for others only because they reuse their bytes."""
    code = {instruction.number: instruction for instruction in instructions(body)}
    pairs_by_line: dict[object, list[tuple[Instruction, Instruction]]] = defaultdict(list)
    for number, instruction in code.items():
        edges = graph.sources(number)
        other_sources = {edge.source for edge in edges if edge.kind != "reuse"}
        for edge in edges:
            if edge.kind == "reuse" and not edge.distance and edge.source not in other_sources:
                pairs_by_line[line_of(instruction.at)].append((instruction, code[edge.source]))
    for pairs in pairs_by_line.values():
        after = pairs[0][0]
        former = Counter(
            f"{instruction.row.name} of line {instruction.at.primary.line}"
            for _, instruction in pairs
        )
        ranked = sorted(former.items(), key=lambda pair: (-pair[1], pair[0]))
        named = ", ".join(f"{name} ({count:,})" for name, count in ranked[:NAMED])
        text = (
            f"{after.row.name} reuses bytes, and has to wait for {plural(len(pairs), 'use')} of "
            f"them: {named}{', …' * (len(ranked) > NAMED)}"
        )
        numbers: Mapping[str, Number] = {"edges": len(pairs), "lines": len(former)}
        yield Remark(ALLOCATE, "reuse", Kind.ANALYSIS, after.at, text, numbers)


# ------------------------------------------------------------------------------------------------
# Remarks of lower for each line: engines, accumulation, and the structure of transfers.

LOWER = "lower"
SLOW_ROWS_RATIO = 1.15  # of the time at full rate: above it, short rows are reported
_Key = tuple[tuple[str, int], str]


def of_lower(program: Program, lowered: Program) -> Iterator[Remark]:
    """Yield the remarks on the stage's input `program` and its output `lowered`."""
    before, after = _by_line(program), _by_line(lowered)
    for key, code in after.items():
        original = before.get(key, [])
        yield from _engines(code, original, lowered.target)
        yield from _accumulation(code, original)
        yield from _transfers(code, lowered.target)


def _by_line(program: Program) -> dict[_Key, list[Instruction]]:
    groups: dict[_Key, list[Instruction]] = defaultdict(list)
    for body in program.cores:
        for instruction in instructions(body):
            groups[line_of(instruction.at), instruction.row.name].append(instruction)
    return groups


# ---- engines ---------------------------------------------------------------------------------


def _engines(
    code: Sequence[Instruction], original: Iterable[Instruction], target: Target
) -> Iterator[Remark]:
    """Yield the engine of instructions that several can run, and the time on each."""
    first = code[0]
    if len(first.row.engines) == 1:
        return
    times: Counter[Engine] = Counter()
    for instruction in code:
        times += Counter(_times(instruction, target))
    ran = Counter(instruction.engine for instruction in code if instruction.engine is not None)
    engine = ran.most_common(1)[0][0]
    is_named = any(instruction.engine is not None for instruction in original)
    best = min(times, key=lambda candidate: (times[candidate], candidate.value), default=engine)
    reason = "the kernel names it" if is_named else "nkic chose it"
    ranked = sorted(times.items(), key=lambda pair: (pair[1], pair[0].value))
    ranking = ", ".join(f"{SHORT_NAMES[e]} {_ns(t)}" for e, t in ranked)
    alternatives = (
        f"alone it takes {ranking}" if len(ranked) > 1 else "no other engine can run these tiles"
    )
    text = f"{first.row.name} runs on {SHORT_NAMES[engine]}: {reason}; {alternatives}"
    numbers: dict[str, Number] = {"instructions": len(code), "engine": SHORT_NAMES[engine]}
    numbers |= {f"{SHORT_NAMES[e].lower()}_ns": t / 1000 for e, t in ranked}
    numbers["named"] = int(is_named)
    is_slow = times[best] < times[engine]
    kind = Kind.MISSED if is_slow else Kind.PASSED
    yield Remark(LOWER, "engine", kind, first.at, text, numbers)


def _times(instruction: Instruction, target: Target) -> dict[Engine, int]:
    """Return the time that each possible engine would be occupied, in picoseconds."""
    times = {}
    for engine in instruction.row.engines:
        facts = instruction._replace(engine=engine).facts(target)
        if engine is instruction.engine or not violations(instruction.row, facts):
            times[engine] = timing(instruction.row, facts, engine).hold
    return times


def _ns(ps: float) -> str:
    return f"{ps / 1000:,.0f} ns"


# ---- accumulation ----------------------------------------------------------------------------


def _accumulation(code: Sequence[Instruction], original: Sequence[Instruction]) -> Iterator[Remark]:
    """Yield the resolution of instructions that leave accumulation open."""
    flag = code[0].row.accumulates
    if not flag or all(instruction.attribute(flag) is not None for instruction in original):
        return
    adding = sum(bool(instruction.attribute(flag)) for instruction in code)
    parts = len(code) - len(original)
    text = (
        f"{code[0].row.name} does not say whether it accumulates: it overwrites dst "
        f"{plural(len(code) - adding, 'time')} and adds to it {plural(adding, 'time')}"
    )
    if parts:
        text += f"; dst was partly written, so {len(original)} became {len(code)}"
    numbers: Mapping[str, Number] = {
        "instructions": len(code),
        "overwriting": len(code) - adding,
        "accumulating": adding,
        "split": parts,
    }
    yield Remark(LOWER, "accumulation", Kind.PASSED, code[0].at, text, numbers)


# ---- transfers -------------------------------------------------------------------------------


def _transfers(code: Sequence[Instruction], target: Target) -> Iterator[Remark]:
    """Yield descriptors, rows and engines of a line's transfers, and the gain of longer rows."""
    transfers = [
        transfer for transfer in code if transfer.engine is Engine.DMA and _patterns(transfer)
    ]
    if not transfers or transfers[0].row.is_rendezvous:
        return
    first = transfers[0]
    descriptor = int(target.figures["dma.descriptor_bytes"])
    rows = min(_row(transfer) for transfer in transfers)
    total = sum(_bytes(transfer) for transfer in transfers)
    pool = sum(timing(t.row, t.facts(target), Engine.DMA).pool for t in transfers) / 1000
    costs = [transfer.row.cost(transfer.facts(target)) for transfer in transfers]
    engines = min(cost.dma_engines or target.dma_engines for cost in costs)
    pieces = sum(-(-_bytes(transfer) // min(_row(transfer), descriptor)) for transfer in transfers)
    best = total / target.peak_rate
    moved = f"{size(total)} in total: each is" if len(transfers) > 1 else f"{size(total)}: it is"
    text = (
        f"{plural(len(transfers), 'transfer')} of {moved} split into rows of at least {rows} "
        f"bytes ({pieces:,} descriptors) over {engines} of {target.dma_engines} DMA engines"
    )
    is_slow = pool > SLOW_ROWS_RATIO * best
    if is_slow:
        text += (
            f"; they take {pool:,.0f} ns of all DMA engines; rows of {descriptor} bytes would take "
            f"{best:,.0f} ns"
        )
    numbers: Mapping[str, Number] = {
        "transfers": len(transfers),
        "moved_bytes": total,
        "row_bytes": rows,
        "descriptors": pieces,
        "dma_engines": engines,
        "dma_ns": pool,
        "full_rate_ns": best,
    }
    kind = Kind.MISSED if is_slow else Kind.PASSED
    yield Remark(LOWER, "dma-split", kind, first.at, text, numbers)


def _patterns(instruction: Instruction) -> list[AccessPattern]:
    return [operand for operand in instruction.operands if isinstance(operand, AccessPattern)]


def _row(transfer: Instruction) -> int:
    """Return the number of bytes that are contiguous on all sides of a transfer."""
    return min(run(pattern.dims) * pattern.dtype.size for pattern in _patterns(transfer))


def _bytes(transfer: Instruction) -> int:
    tile = _patterns(transfer)[0].tile()
    return tile.elements * tile.dtype.size


# ------------------------------------------------------------------------------------------------
# Remarks on the schedule: which lines overlap, what each line waits for, and early loads.
# The orderer runs again over the stage's input, and each decision is recorded as an `Issue`.

SCHEDULE = "schedule"
MIN_WAIT_PS = 1000  # least waiting that is reported, in picoseconds
KINDS = {
    "raw": "it reads what {name} writes",
    "war": "it overwrites what {name} reads",
    "waw": "it overwrites what {name} writes",
    "state": "both change the state of an engine",
    "user": "the kernel orders them",
    "pin": "the kernel keeps them in order",
    "reuse": "it reuses bytes that {name} accesses",
    "token": "it comes after {name}",
}


class Issue(NamedTuple):
    """A scheduled instruction; times in picoseconds.

    The engine was `idle` from that time on, the instruction was `ready` when the dependence
    `because` was satisfied, and it held the engine from `start` to `free`.
    """

    instruction: Instruction
    engine: Engine
    idle: int
    ready: int
    start: int
    free: int
    because: Edge | None

    @property
    def waited(self) -> int:
        """How long the engine was idle for this instruction."""
        return max(0, self.ready - self.idle) if self.because is not None else 0


class _Recorder(ListScheduler):
    """List scheduling that records what determined the start of each instruction."""

    latest: dict[int, tuple[int, int]]  # by instruction: its latest dependence, as time and source

    def _release_waiters(self, index: int, free: int, done: int) -> None:
        signalled = done + self.orderer.semaphore_ps
        for waiter in self.waiters[index]:
            own = self.classes[index].engine is self.classes[waiter].engine is not Engine.DMA
            time = self._seen(index, waiter, free, done) if own else signalled
            if time >= self.latest.get(waiter, (0, 0))[0]:
                self.latest[waiter] = (time, index)
        super()._release_waiters(index, free, done)

    def record(self) -> Iterator[Issue]:
        """Yield the whole stretch in order of issue."""
        self.latest = {}
        self.begin()
        issues = self.issues()
        for _ in self.code:
            idle = {engine: lane.free for engine, lane in self.lanes.items()}
            yield self._issue_of(next(issues), idle)

    def _issue_of(self, index: int, idle: Mapping[Engine, int]) -> Issue:
        instruction, engine = self.code[index], self.classes[index].engine
        ready, source = self.latest.get(index, (0, -1))
        edges = [
            edge
            for edge in self.orderer.graph.sources(instruction.number)
            if source >= 0 and edge.source == self.code[source].number
        ]
        queue = self.streams[index] - FIRST_STREAM[engine]
        times = self.orderer.timings.of(instruction, queue)
        free = self.done[index] - times.latency
        hold = times.hold
        because = min(edges, key=lambda edge: edge.kind == "reuse", default=None)
        return Issue(instruction, engine, idle[engine], ready, free - hold, free, because)


@dataclass
class _Plan:
    """A core's issues, stretch by stretch, and its loops."""

    issues: list[Issue] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)


def of_schedule(
    placed: Program, graphs: Sequence[DependenceGraph], serial: bool, in_order: bool
) -> Iterator[Remark]:
    """Yield the remarks; the arguments are those of the stage."""
    target = placed.target.used_by(len(placed.cores))
    for body, graph in zip(placed.cores, graphs, strict=True):
        if serial:
            first = next(iter(instructions(body)), None)
            text = "nothing overlaps: --serial runs one instruction at a time, in program order"
            yield Remark(SCHEDULE, "serial", Kind.MISSED, first.at if first else None, text)
            continue
        plan = _Plan()
        _walk(body, Orderer(graph, target, in_order), plan)
        code = {one.number: one for one in instructions(body)}
        yield from _waits(plan.issues, code)
        yield from _overlaps(plan.issues)
        yield from _early(plan.issues, graph)
        for loop in plan.loops:
            yield _loop(loop)
            yield from _hoists(loop, target)


def _walk(body: Body, orderer: Orderer, plan: _Plan) -> None:
    code: list[Instruction] = []
    for item in (*body, None):
        if isinstance(item, Instruction):
            code.append(item)
            continue
        if code:
            plan.issues += _Recorder(orderer, orderer.known(code)).record()
            code = []
        if item is not None:
            plan.loops.append(item)
            _walk(item.body, orderer, plan)


# ---- waits -----------------------------------------------------------------------------------


def _waits(issues: Sequence[Issue], code: Mapping[int, Instruction]) -> Iterator[Remark]:
    """Yield idle times of engines, by the two source lines and the dependence between them."""
    waits: dict[tuple[object, object, str], list[tuple[Issue, Instruction]]] = defaultdict(list)
    for issue in issues:
        edge = issue.because
        if edge is not None and issue.waited >= MIN_WAIT_PS and edge.source in code:
            source = code[edge.source]
            key = (line_of(issue.instruction.at), line_of(source.at), edge.kind)
            waits[key].append((issue, source))
    for (_, _, kind), pairs in waits.items():
        issue, source = pairs[0]
        name, line = source.row.name, source.at.primary.line
        waited = sum(wait.waited for wait, _ in pairs)
        reason = KINDS.get(kind, KINDS["token"]).format(name=name)
        text = (
            f"{SHORT_NAMES[issue.engine]} is idle for {waited / 1000:,.0f} ns before "
            f"{issue.instruction.row.name} ({plural(len(pairs), 'time')}), for {name} of line "
            f"{line}: {reason} ({kind})"
        )
        numbers: Mapping[str, Number] = {
            "engine": SHORT_NAMES[issue.engine],
            "edge": kind,
            "times": len(pairs),
            "waited_ns": waited / 1000,
            "before_line": line,
            "before_path": source.at.primary.path,
        }
        yield Remark(SCHEDULE, "wait", Kind.MISSED, issue.instruction.at, text, numbers)


# ---- overlap ---------------------------------------------------------------------------------


def _overlaps(issues: Sequence[Issue]) -> Iterator[Remark]:
    """Yield, per line, the share of its time during which other engines work."""
    by_line: dict[object, list[Issue]] = defaultdict(list)
    for issue in issues:
        by_line[line_of(issue.instruction.at), issue.engine].append(issue)
    others = {
        engine: _Busy([(i.start, i.free) for i in issues if i.engine is not engine])
        for engine in {issue.engine for issue in issues}
    }
    for line_issues in by_line.values():
        first = line_issues[0]
        spans = joined([(issue.start, issue.free) for issue in line_issues])
        time = sum(end - start for start, end in spans)
        overlapped = sum(others[first.engine].within(*span) for span in spans)
        if not time:
            continue
        share = overlapped / time
        text = (
            f"{first.instruction.row.name} holds {SHORT_NAMES[first.engine]} for "
            f"{time / 1000:,.0f} ns; other engines work during {100 * share:.0f}% of that"
        )
        numbers: Mapping[str, Number] = {
            "engine": SHORT_NAMES[first.engine],
            "instructions": len(line_issues),
            "busy_ns": time / 1000,
            "overlapped_ns": overlapped / 1000,
        }
        kind = Kind.PASSED if share >= 0.5 else Kind.MISSED
        yield Remark(SCHEDULE, "overlap", kind, first.instruction.at, text, numbers)


class _Busy:
    """The union of time intervals, with prefix sums of their lengths."""

    def __init__(self, spans: Ranges) -> None:
        self.spans = joined(spans)
        self.starts = [start for start, _ in self.spans]
        self.before = [0]
        for start, end in self.spans:
            self.before.append(self.before[-1] + end - start)

    def within(self, start: int, end: int) -> int:
        """Return the busy time between `start` and `end`."""
        return self._until(end) - self._until(start)

    def _until(self, time: int) -> int:
        index = bisect_right(self.starts, time) - 1
        if index < 0:
            return 0
        start, end = self.spans[index]
        return self.before[index] + min(time, end) - start


# ---- loads -----------------------------------------------------------------------------------


def _early(issues: Sequence[Issue], graph: DependenceGraph) -> Iterator[Remark]:
    """Yield how long transfers complete before their first users could start."""
    issue_of = {issue.instruction.number: issue for issue in issues}
    needed: dict[int, int] = {}
    for number, issue in issue_of.items():
        for edge in graph.sources(number):
            if edge.kind == "raw" and not edge.distance:
                needed[edge.source] = min(needed.get(edge.source, issue.start), issue.start)
    by_line: dict[object, list[Issue]] = defaultdict(list)
    for issue in issues:
        if issue.engine is Engine.DMA and issue.instruction.number in needed:
            by_line[line_of(issue.instruction.at)].append(issue)
    for line_issues in by_line.values():
        ahead = [max(0, needed[load.instruction.number] - load.free) for load in line_issues]
        passed = _overtaken(line_issues, issues)
        text = (
            f"{plural(len(line_issues), 'load')}: on average "
            f"{sum(ahead) / len(ahead) / 1000:,.0f} ns ahead of their first use; "
            f"{plural(passed, 'earlier instruction')} of the program are issued after one of them"
        )
        numbers: Mapping[str, Number] = {
            "loads": len(line_issues),
            "ahead_ns": sum(ahead) / len(ahead) / 1000,
            "overtaken": passed,
        }
        kind = Kind.PASSED if passed or len(line_issues) == 1 else Kind.ANALYSIS
        yield Remark(SCHEDULE, "early-load", kind, line_issues[0].instruction.at, text, numbers)


def _overtaken(line_issues: Sequence[Issue], issues: Sequence[Issue]) -> int:
    """Count the instructions before the last of `line_issues` that are issued after it."""
    order = {id(issue): at for at, issue in enumerate(issues)}
    last = max(line_issues, key=lambda issue: issue.instruction.number)
    return sum(
        issue.instruction.number < last.instruction.number and order[id(issue)] > order[id(last)]
        for issue in issues
    )


# ---- device loops ----------------------------------------------------------------------------


def _loop(loop: Loop) -> Remark:
    """Return the remark on a device loop and whether its iterations overlap."""
    iterations = loop.trips
    times = (
        "a number of times that a register holds"
        if iterations is None
        else plural(iterations, "time")
    )
    description = (
        "an iteration reuses the tiles of the previous one, and waits for their last uses"
        if overlaps(loop)
        else "all engines synchronise between its iterations, so that no iteration overlaps the "
        "next"
    )
    text = f"this is a device loop, which runs {times}: {description}; a Python range is unrolled"
    count = len([*instructions(loop.body)])
    numbers: Mapping[str, Number] = {
        "iterations": -1 if iterations is None else iterations,
        "instructions": count,
    }
    return Remark(SCHEDULE, "device-loop", Kind.MISSED, loop.at, text, numbers)


def _hoists(loop: Loop, target: Target) -> Iterator[Remark]:
    """Yield the loop-invariant instructions of `loop`, which nkic does not hoist."""
    touched = touches_of(loop.body, target)
    writers = Counter(
        number
        for instruction in instructions(loop.body)
        for number in _written(touched[instruction.number])
    )
    for item in loop.body:
        if not isinstance(item, Instruction) or item.row.is_rendezvous:
            continue
        if _is_same(touched[item.number], writers):
            times = timing(item.row, item.facts(target), engine_of(item))
            cost = (times.start + times.hold + times.latency) / 1000
            text = (
                f"{item.row.name} is loop-invariant, and nkic does not hoist it: it takes "
                f"{cost:,.0f} ns per iteration of the device loop; write it before the loop"
            )
            yield Remark(SCHEDULE, "hoist", Kind.MISSED, item.at, text, {"turn_ns": cost})


def _written(touches: Iterable[Touch]) -> set[int]:
    return {touch.pattern.tensor.number for touch in touches if touch.writes}


def _is_same(touches: Sequence[Touch], writers: Mapping[int, int]) -> bool:
    """Return whether an instruction is loop-invariant.

    Its operands are not written in the loop, and it is the only writer of its on-chip results.
    """
    return (
        bool(_written(touches))
        and all(touch.pattern.dynamic is None for touch in touches)
        and not any(touch.reads and writers.get(touch.pattern.tensor.number) for touch in touches)
        and all(writers[number] == 1 for number in _written(touches))
        and all(touch.pattern.tensor.on_chip for touch in touches if touch.writes)
    )


# ---- Remarks on the search: the trials, the one that was kept, and its gain ---------------------

SEARCH = "search"


def _search(searched: Searched) -> Remark:
    times = [trial.ns for trial in searched.tried if trial.ns is not None]
    kept_ns = min([searched.first_ns, *times])
    gain = 1 - kept_ns / searched.first_ns if searched.first_ns else 0.0
    numbers: Mapping[str, Number] = {
        "tried": len(searched.tried),
        "first_ns": searched.first_ns,
        "bound_ns": searched.bound_ns,
        "kept_ns": kept_ns,
        "gain": gain,
        "kept": describe(searched.kept) if searched.kept is not None else "the first plan",
    }
    bounds = (
        f"{searched.first_ns:,.0f} ns, and no order can take less than {searched.bound_ns:,.0f} ns"
    )
    if not searched.tried:
        text = f"the first plan is close enough to its lower bound: {bounds}"
        return Remark(SEARCH, "search", Kind.ANALYSIS, None, text, numbers)
    best_ns = min(times, default=None)
    tried = plural(len(searched.tried), "other plan")
    if searched.kept is None:
        best = "none of them fits" if best_ns is None else f"the best takes {best_ns:,.0f} ns"
        text = f"{tried} tried, none kept: the first takes {bounds}; {best}"
        return Remark(SEARCH, "search", Kind.MISSED, None, text, numbers)
    text = (
        f"{tried} tried; kept: {describe(searched.kept)}, {kept_ns:,.0f} ns, "
        f"{100 * gain:.0f}% less than the first, which takes {bounds}"
    )
    return Remark(SEARCH, "search", Kind.PASSED, None, text, numbers)


def describe(trial: Trial) -> str:
    if trial.share is None:
        banks = ", with separate PSUM banks for each declaration"
        order = ", on each engine too" if trial.in_order else ""
        return f"program order{order}{banks if trial.roles else ''}"
    first = "program order" if trial.by_program else "the longest path"
    return f"planned with {100 * trial.share:.0f}% of memory, {first} first"


def _moved(lowered: Program, placed: Program) -> Iterator[Remark]:
    """Yield the lines whose transfers come earlier in the new order than in the program."""
    for before, after in zip(lowered.cores, placed.cores, strict=True):
        # A new order has new instruction numbers, but the same operands.
        old = {
            id(instruction.operands): index
            for index, instruction in enumerate(instructions(before))
            if instruction.operands
        }
        by_line: dict[object, list[tuple[int, Instruction]]] = defaultdict(list)
        for index, instruction in enumerate(instructions(after)):
            moved = old.get(id(instruction.operands), index) - index
            if moved > 0 and engine_of(instruction) is Engine.DMA:
                by_line[line_of(instruction.at)].append((moved, instruction))
        for pairs in by_line.values():
            farthest, first = max(moved for moved, _ in pairs), pairs[0][1]
            text = (
                f"{plural(len(pairs), 'transfer')} planned ahead of the program's order, by "
                f"up to {plural(farthest, 'instruction')}, as far as memory allows"
            )
            numbers: Mapping[str, Number] = {"moved": len(pairs), "most": farthest}
            yield Remark(SEARCH, "moved-ahead", Kind.PASSED, first.at, text, numbers)


# --------------------------------------------------------------------------------------------------

STAGES = (SEARCH, LOWER, ALLOCATE, SCHEDULE)


def remarks(compiled: Compiled, level: int) -> list[Remark]:
    """Return the remarks by line of the kernel, then by stage.

    `level` is that of `CompileOptions`. Stages that did not run, because the compilation started
    from a printed program, have no remarks.
    """
    return in_order(_all(compiled, level), STAGES)


def _all(compiled: Compiled, level: int) -> Iterator[Remark]:
    program: Program = compiled.results["specialise"]
    scheduled_program: ScheduledProgram = compiled.results["search"]
    ordered: Schedule = compiled.results["schedule"]
    lowered_program: Program | None = compiled.results.get("lower")
    if lowered_program is None:
        return
    trial = scheduled_program.searched.kept if scheduled_program.searched is not None else None
    extra = {} if trial is None else {"rest": trial.rest}
    is_kept = trial.in_order if trial is not None else level == 0
    yield from of_lower(program, lowered_program)
    yield from of_allocate(scheduled_program.placed, scheduled_program.graphs, **extra)
    yield from of_schedule(
        scheduled_program.placed, scheduled_program.graphs, ordered.serial, is_kept
    )
    if scheduled_program.searched is not None:
        yield _search(scheduled_program.searched)
    yield from _moved(lowered_program, scheduled_program.placed)
