"""Remarks on the schedule: which lines overlap, what each line waits for, and early loads.

The orderer runs again over the stage's input, and each decision is recorded as an `Issue`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from nkic.base.remark import Kind, Number, Remark, line_of
from nkic.base.text import plural
from nkic.ir.dependence import DependenceGraph, Edge
from nkic.ir.effects import Touch, touches_of
from nkic.ir.program import Body, Instruction, Loop, Program, instructions
from nkic.machine.engines import SHORT_NAMES, Engine
from nkic.machine.targets import Target
from nkic.machine.timing import timing
from nkic.schedule.carried import overlaps
from nkic.schedule.order import ListScheduler, Orderer
from nkic.schedule.placed import FIRST_STREAM, engine_of

STAGE = "schedule"
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


def remarks(
    placed: Program, graphs: Sequence[DependenceGraph], serial: bool, in_order: bool
) -> Iterator[Remark]:
    """Yield the remarks; the arguments are those of the stage."""
    target = placed.target.used_by(len(placed.cores))
    for body, graph in zip(placed.cores, graphs, strict=True):
        if serial:
            yield _serial(body)
            continue
        plan = _plan(body, Orderer(graph, target, in_order))
        code = {one.number: one for one in instructions(body)}
        yield from _waits(plan.issues, code)
        yield from _overlaps(plan.issues)
        yield from _early(plan.issues, graph)
        for loop in plan.loops:
            yield _loop(loop)
            yield from _hoists(loop, target)


def _serial(body: Body) -> Remark:
    first = next(iter(instructions(body)), None)
    text = "nothing overlaps: --serial runs one instruction at a time, in program order"
    return Remark(STAGE, "serial", Kind.MISSED, first.at if first is not None else None, text)


def _plan(body: Body, orderer: Orderer) -> _Plan:
    plan = _Plan()
    _walk(body, orderer, plan)
    return plan


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
        yield Remark(STAGE, "wait", Kind.MISSED, issue.instruction.at, text, numbers)


# ---- overlap ---------------------------------------------------------------------------------


def _overlaps(issues: Sequence[Issue]) -> Iterator[Remark]:
    """Yield, per line, the share of its time during which other engines work."""
    by_line: dict[object, list[Issue]] = defaultdict(list)
    for issue in issues:
        by_line[line_of(issue.instruction.at), issue.engine].append(issue)
    others = {
        engine: _Busy((i.start, i.free) for i in issues if i.engine is not engine)
        for engine in {issue.engine for issue in issues}
    }
    for line_issues in by_line.values():
        first = line_issues[0]
        spans = _union((issue.start, issue.free) for issue in line_issues)
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
        yield Remark(STAGE, "overlap", kind, first.instruction.at, text, numbers)


def _union(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the union of `spans` as disjoint intervals in order."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


class _Busy:
    """The union of time intervals, with prefix sums of their lengths."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        self.spans = _union(spans)
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
        yield Remark(STAGE, "early-load", kind, line_issues[0].instruction.at, text, numbers)


def _overtaken(line_issues: Sequence[Issue], issues: Sequence[Issue]) -> int:
    """Count the instructions that are before the last of `line_issues` in the program and issued
    after it.
    """
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
    return Remark(STAGE, "device-loop", Kind.MISSED, loop.at, text, numbers)


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
            yield Remark(STAGE, "hoist", Kind.MISSED, item.at, text, {"turn_ns": cost})


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
