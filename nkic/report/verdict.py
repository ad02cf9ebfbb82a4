"""The verdict on a run: what bounds it, how close it is to the bound, where, and what would help
most.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any

from nkic.artifact.events import Change, Trace
from nkic.base.collector import without_collector
from nkic.base.text import clean, decimal, size
from nkic.machine.targets import PARTITIONS, SHORT_NAMES, Buffer, Engine
from nkic.report.costs import Accounts, LiveRange, live_ranges, peak
from nkic.report.critical import TRIGGERS, Line, Segment, critical_path, spending
from nkic.report.questions import questions
from nkic.report.resources import resources
from nkic.report.shorter import Question

LINES = 3  # source lines that are named
QUESTION_EVENTS = 60_000  # events simulated again over all questions: fewer than a run takes
MIN_QUESTIONS = 12
LIMITS = 5  # questions about parts of the machine that are always asked, if there are as many
MIN_GAIN = 0.02  # smaller gains of advice are noise, and not reported
CLOSE = 0.06  # difference of gains below which the kind of advice decides
MIN_BOUND = 0.1  # gain of a free part of the machine from which it alone bounds the run
MIN_PART = 0.25  # the same, as a share of its part of the critical path
MIN_LIMIT = 0.005  # smaller gains of free parts of the machine are not reported

MOST_BUSY = 0.8  # of its time: such an engine would soon be the limit if others were free
SYNC = SHORT_NAMES[Engine.SYNC]
FREE_TRIGGERS, TRIGGER, MOVE = "free-triggers", "trigger-", "engine-"
# What the questions about parts of the machine are about, as the critical path calls it.
PARTS = {"triggers": TRIGGERS, "tables": "table load", "memory": "waits for memory"}

Again = Callable[[Change], int]


@dataclass(frozen=True)
class Answer:
    """The effect of a change: `time_ps` is the time of the run with it, `gain` the share saved.

    `code` is the related compiler warning (-W 06), if any. `estimated`: the run is an approximation
    of the changed kernel's. `adds` are keywords to add to the call, if that is all there is to do;
    `loads` are the lines of the transfers that are not repeated.
    """

    name: str
    text: str
    time_ps: int
    gain: float
    is_advice: bool
    code: str = ""
    estimated: bool = False
    adds: str = ""
    loads: tuple[Line, ...] = ()

    @property
    def words(self) -> str:
        """The text with the code, for --explain."""
        return f"{self.text} ({self.code})" if self.code else self.text

    @property
    def how(self) -> str:
        """Whether the gain is that of a run or an estimate, for people."""
        return " (estimated)" if self.estimated else ""


@dataclass(frozen=True)
class HotLine:
    """A line with its part of the critical path, and the engine that it mostly uses."""

    line: str
    share: float
    engine: str


@dataclass(frozen=True)
class Owner:
    """Bytes of a memory at its peak, and the tensor that owns them."""

    name: str
    line: str
    bytes: int


@dataclass(frozen=True)
class Verdict:
    """The verdict on a run.

    `bound` is the largest use of the critical path, `path` its parts as shares of the time. If the
    run would gain little with the bound alone free, `limits` are the parts of the machine that
    limit it together, greatest gain first. `busy`
    maps an engine to a share of the time of all cores. `mfu` relates the multiplications and
    additions of products to the tensor engine's peak for 16-bit floats, `mbu` the bytes from and to
    HBM to the rate of all DMA engines. `answers` are the times of other runs. `spilled` counts the
    bytes of tiles that waited in HBM because they did not fit into SBUF (`nkic --spill`).
    """

    bound: str
    path: dict[str, float]
    busy: dict[str, float]
    mfu: float
    mbu: float
    hbm_rate: float
    hot: Sequence[HotLine]
    answers: Sequence[Answer]
    sbuf_peak: int
    sbuf_limit: int
    psum_peak: int
    owners: Sequence[Owner]
    spilled: int = 0
    limits: Sequence[str] = ()

    @property
    def told(self) -> list[Answer]:
        """The answers that are worth telling: all but advice with a gain below the noise."""
        return [a for a in self.answers if not a.is_advice or a.gain >= MIN_GAIN]

    @property
    def advice(self) -> list[Answer]:
        """The advice that is worth telling, best first.

        Where gains are close, what removes work comes before what moves it to another engine.
        """
        advice = [a for a in self.told if a.is_advice]
        best = max((a.gain for a in advice), default=0.0)
        return sorted(advice, key=lambda a: a.name.startswith(TRIGGER) or a.gain < best - CLOSE)

    @property
    def lines(self) -> list[str]:
        """The verdict in at most six lines of text."""
        return [line for line in (self._bound, self._hot, *self._help, self._memory) if line]

    @property
    def _bound(self) -> str:
        name = self.bound
        figures = [f"{short} {_percent(share)} busy" for short, share in self.busy.items() if share]
        if self.mfu:
            figures.append(f"MFU {_percent(self.mfu)}")
        if self.mbu:
            figures.append(f"MBU {_percent(self.mbu)} ({self.hbm_rate:.1f} GB/s)")
        head = f"bound by {name}: {_percent(self.path.get(name, 0))} of the critical path"
        if self.limits:
            head = f"limited by several: {', '.join(self.limits)}"
        return "; ".join((head, ", ".join(figures)))

    @property
    def _hot(self) -> str:
        lines = [f"{hot.line} {_percent(hot.share)} ({hot.engine})" for hot in self.hot]
        return f"critical path: {', '.join(lines)}" if lines else ""

    @property
    def _help(self) -> list[str]:
        advice = self.advice
        limits = [a for a in self.told if not a.is_advice and a.gain >= MIN_LIMIT]
        texts = [f"{_percent(a.gain)} less time{a.how}: {a.words}" for a in advice[:1]]
        words = [f"{a.text}: {_percent(a.gain)} less" for a in limits[:LINES]]
        return [*texts, *(["; ".join(words)] if words else [])]

    @property
    def _memory(self) -> str:
        if not self.sbuf_peak:
            return ""
        shares = (
            f"{clean(o.name)} ({o.line}) {_percent(o.bytes / self.sbuf_peak)}" for o in self.owners
        )
        used = f"{size(self.sbuf_peak)} of {size(self.sbuf_limit)}"
        moved = (
            f"; {decimal(self.spilled)} moved to HBM for lack of memory (--spill)"
            if self.spilled
            else ""
        )
        return f"memory: at most {used} of SBUF hold data at one time: {', '.join(shares)}{moved}"

    def as_json(self) -> dict[str, object]:
        """Return the verdict for programs; empty parts are left out."""
        told = {answer.name for answer in self.told}
        record = asdict(self)
        record["answers"] = [
            {**each, "loads": [str(line) for line in each["loads"]]}
            for each in record["answers"]
            if each["name"] in told
        ]
        for name in ("spilled", "limits"):
            if not record[name]:
                del record[name]
        return record


def _percent(share: float) -> str:
    """Return a percentage with as many digits as are meaningful."""
    return f"{100 * share:.0f}%" if share >= 0.01 or share == 0 else f"{100 * share:.1g}%"


@dataclass(frozen=True)
class Insight:
    trace: Trace
    accounts: Accounts
    path: list[Segment]
    live_ranges: list[LiveRange]
    verdict: Verdict
    kept: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """Results that reports have computed and share, by name."""


def insight(trace: Trace, again: Again | None, max_events: int = QUESTION_EVENTS) -> Insight:
    """Analyse a complete trace.

    `again` returns the time of the run with a change; without it no question is asked.
    `max_events` is the number of events to simulate again, over all questions.
    """
    with without_collector():
        path = critical_path(trace)
        accounts = Accounts(trace, path)
        ranges = live_ranges(accounts)
        answers = _answers(accounts, path, ranges, again, max_events) if again is not None else []
        return Insight(trace, accounts, path, ranges, _verdict(accounts, path, ranges, answers))


def _answers(
    accounts: Accounts, path: list[Segment], ranges: list[LiveRange], again: Again, max_events: int
) -> list[Answer]:
    """Answer what the budget allows, greatest weight first, advice before limits; return those
    that save work first, and those that move it to another engine last.
    """
    trace = accounts.trace
    count = max(MIN_QUESTIONS, max_events // max(1, len(trace.events)))
    asked = questions(accounts, path, ranges)
    limits = [question for question in asked if not question.is_advice]
    chosen = [question for question in asked if question.is_advice]
    chosen = chosen[: count - min(LIMITS, len(limits))]
    chosen += limits[: count - len(chosen)]
    fair = {id(q.given): again(q.given) == trace.end for q in chosen if q.given is not None}
    chosen = [q for q in chosen if q.given is None or fair[id(q.given)]]
    answers = [_answer(q, again(q.change), trace.end) for q in chosen]
    best = map(partial(_unbeaten, answers), answers)
    return sorted(best, key=lambda a: (a.name.startswith(MOVE), a.time_ps, a.name))


def _unbeaten(answers: Sequence[Answer], answer: Answer) -> Answer:
    """Return an answer that no advice about the same part of the machine beats.

    Transfers whose triggers are free can come in a worse order than those of two engines.
    """
    if answer.name != FREE_TRIGGERS:
        return answer
    rivals = [each for each in answers if each.name.startswith(TRIGGER)]
    best = max([answer, *rivals], key=lambda each: each.gain)
    return replace(answer, time_ps=best.time_ps, gain=best.gain)


def _answer(question: Question, time: int, end: int) -> Answer:
    q, gain = question, max(0.0, 1 - time / end)
    return Answer(q.name, q.text, time, gain, q.is_advice, q.code, q.estimated, q.adds, q.loads)


def _limits(
    bound: str, share: float, answers: Sequence[Answer], busy: Mapping[str, float]
) -> list[str]:
    """Return the parts of the machine that limit the run together, greatest gain first; none if
    `bound` alone does.

    Those that are busy most of the time come last: they would be the limit if the others were free.
    """
    free = {a.name.removeprefix("free-"): a.gain for a in answers if a.name.startswith("free-")}
    parts = {PARTS.get(name, name): gain for name, gain in free.items()}
    around = sorted((part for part in parts if bound.startswith(part)), key=len)
    if not around:
        return []
    part_of = around.pop()  # "DMA triggers", which "DMA" includes
    own, most = parts[part_of], max(parts[part] for part in parts if part not in around)
    if own >= max(MIN_BOUND, MIN_PART * share) and own == most:
        return []
    named = [part for part, gain in parts.items() if gain >= MIN_LIMIT]
    full = [TRIGGERS if part == SYNC else part for part, use in busy.items() if use >= MOST_BUSY]
    own_part = [] if part_of in named else [bound]
    several = [*dict.fromkeys([*named, *full, *own_part])]
    return several if len(several) > 1 else []


def _verdict(
    accounts: Accounts, path: list[Segment], ranges: list[LiveRange], answers: list[Answer]
) -> Verdict:
    trace, target = accounts.trace, accounts.target
    end, cores = trace.end or 1, max(1, trace.executable.cores)
    costs = accounts.by_line
    spent = {name: time / end for name, time in spending(trace, path).items()}
    hbm = sum(cost.hbm for cost in costs.values())
    operations = sum(cost.operations for cost in costs.values())
    sbuf = peak(ranges, Buffer.SBUF)
    psum = peak(ranges, Buffer.PSUM)
    bound, busy = next(iter(spent), "nothing"), _busy(accounts, end * cores)
    return Verdict(
        bound=bound,
        path=spent,
        busy=busy,
        mfu=operations * 1000 / (target.peak_operations * end * cores),
        mbu=hbm * 1000 / (target.peak_rate * end * cores),
        hbm_rate=hbm * 1000 / end,
        hot=_hot(accounts, end),
        answers=answers,
        sbuf_peak=sbuf.bytes,
        sbuf_limit=target.sbuf_usable * PARTITIONS * cores,
        psum_peak=psum.bytes,
        owners=[Owner(name, line.short, size) for name, line, size in sbuf.owners[:LINES]],
        spilled=resources(trace.executable).spilled_bytes,
        limits=_limits(bound, spent.get(bound, 0), answers, busy),
    )


def _busy(accounts: Accounts, time: int) -> dict[str, float]:
    """Return the busy share of each compute engine: of queues, which are parallel, none."""
    times = dict.fromkeys((n for e, n in SHORT_NAMES.items() if e is not Engine.DMA), 0)
    for cost in accounts.by_line.values():
        for name, busy in (*cost.busy.items(), *cost.triggers.items()):
            if name in times:
                times[name] += busy
    return {name: busy / time for name, busy in times.items() if busy}


def _hot(accounts: Accounts, end: int) -> list[HotLine]:
    ranked = sorted(accounts.by_line.items(), key=lambda pair: (-pair[1].critical, pair[0]))
    return [
        HotLine(line.short, cost.critical / end, cost.main or "waiting")
        for line, cost in ranked[:LINES]
        if cost.critical
    ]
