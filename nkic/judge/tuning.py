"""Finding the best point: estimate many, run the best, and return only what was compared.

The compiler's estimate is the time of a run, so that most points need not be run. Every step
depends on the outcomes of earlier ones alone, and these come from the results that are kept: a
tuning that was stopped takes the same steps again, without their cost, and goes on.
"""

from __future__ import annotations

import ast
import json
import os
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from itertools import islice, product
from math import floor, inf, log10, prod
from typing import Any, NamedTuple

from nkic.api.options import Count, FilePath, Seconds, Seed, public
from nkic.base import files
from nkic.base.diagnostics import UsageFailed, bad_value, need, refusal, suggestion
from nkic.base.source import SourceFile, Span
from nkic.base.text import aligned, clean, listed, plural, size
from nkic.judge import Candidate, Evaluation, Judge, Placed, Results, Task, placed, read_task
from nkic.judge.cluster import pool_of
from nkic.judge.pool import Pool
from nkic.judge.task import task_of
from nkic.report.allocations import LETTERS, STYLE, WIDTH, picture, rect
from nkic.source import nodes
from nkic.source.parse import parse
from nkic.source.parser import decode

# ------------------------------------------------------------------------------------------------
# The choices of a kernel: the named values in its text, and which values to try for each.
# A named value is `NAME = value` in a file or a class, or the default of a function's parameter.
# Its full name is dotted: `TILE`, `Config.tile`, `kernel.tile`. A point is written into the text
# by replacing these values where they stand, so that it is a kernel's file like any other.

OPTIMISE = "-O"  # the choice that is not in the text
MANY = 10_000  # values of a choice
_RANGE = re.compile(r"(?<![\w.])(\d{1,9})\.\.(\d{1,9})(?:\*(\d{1,9}))?(?![\w.])")
_MARK = re.compile(r"#[ \t]*tune:(.*)")
_FORMS = "write values, as in 128,256,512, or a range: 1..4, or 128..1024*2 for powers"

Point = Mapping[str, str]  # the text of a value by the name of its choice
Places = Sequence[tuple[str, Span]]  # named values: full name, and where the value is


class Choice(NamedTuple):
    """A choice: the values to try, the present one, and where it is (None for `-O`)."""

    name: str
    values: tuple[str, ...]
    present: str
    at: Span | None


@dataclass(frozen=True)
class Space:
    """The points of a kernel's choices."""

    source: SourceFile
    choices: tuple[Choice, ...]

    @property
    def size(self) -> int:
        return prod(len(choice.values) for choice in self.choices)

    @property
    def present(self) -> Point:
        """The kernel as it is, which need not be among the points."""
        return {choice.name: choice.present for choice in self.choices}

    def points(self) -> Iterator[Point]:
        """Yield all points; the last choice changes fastest."""
        names = [choice.name for choice in self.choices]
        for values in product(*(choice.values for choice in self.choices)):
            yield dict(zip(names, values, strict=True))

    def text(self, point: Point) -> str:
        return self.source.replaced((c.at, point[c.name]) for c in self.choices if c.at)


def label(point: Point) -> str:
    return " ".join(f"{name}={value}" for name, value in point.items())


def space_of(source: SourceFile, task: Task, vary: Mapping[str, str | Sequence[Any]]) -> Space:
    """Return the space of what is to be varied; of the choices that the text marks if that is
    nothing. Raises `UsageFailed`, or `CompileFailed` with the place in the text.
    """
    places = [*_places(parse(source).body, "")]
    found = [_choice(source, task, places, *wish) for wish in vary.items()]
    if not vary:
        found = [*_marked(source, places)]
        if not found:
            help = "say --vary NAME=VALUES, or write `# tune: 128, 256` beside a named value"
            raise bad_value(f"`{source.path}` marks no choice", help)
    for choice in found:
        name = choice.name.rpartition(".")[2]
        fixed = [case.name for case in task.cases if choice.at and name in case.consts]
        if fixed:
            text = f"`{name}` is varied, but the task sets it: consts of case {fixed[0]}"
            raise bad_value(text, "remove it there, so that the kernel's default holds")
        if choice.name == OPTIMISE and task.optimise is not None:
            raise bad_value("-O is varied, but the task sets it", "remove `optimise` there")
    if len({choice.at for choice in found}) < len(found):
        raise bad_value("--vary names one choice twice", "give all its values at once")
    return Space(source, tuple(found))


def _choice(source: SourceFile, task: Task, places: Places, name: str, wish: Any) -> Choice:
    text = wish if isinstance(wish, str) else ",".join(map(repr, wish))
    values = _values(text, f"--vary {name}")
    if name == OPTIMISE:
        if not {*values} <= {"0", "1", "2"}:
            raise bad_value(f"--vary -O={text}: the levels are 0, 1 and 2", "write -O=0..2")
        return Choice(name, values, "1", None)
    matching = [place for place in places if place[0] == name]
    matching = matching or [place for place in places if place[0].endswith(f".{name}")]
    if not matching:
        known = {word for full, _ in places for word in (full, full.rpartition(".")[2])}
        help = suggestion(name, sorted(known)) if known else ""
        help = help or f"give it one: `{name} = {values[0]}`, or a parameter's default"
        raise bad_value(f"--vary: `{source.path}` has no value of the name `{name}`", help)
    if len(matching) > 1:
        lines = listed(f"{full} (line {at.line})" for full, at in matching)
        once = matching[0][0] == matching[1][0]
        help = "assign it once" if once else f"say which: --vary {matching[0][0]}={text}"
        raise bad_value(f"--vary: `{name}` is {lines}", help)
    ((full, at),) = matching
    return Choice(full, values, source.text_of(at), at)


def _values(text: str, where: str) -> tuple[str, ...]:
    """Return the distinct values of a list: the text of each."""
    spread = f"({_RANGE.sub(lambda match: _spread(match, where), text)},)"
    try:
        tree = ast.parse(spread, mode="eval").body
        assert isinstance(tree, ast.Tuple)
        parts = [] if any(isinstance(e, ast.Starred) for e in tree.elts) else tree.elts
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        parts = []
    data = spread.encode("utf-8", "surrogateescape")  # without parts, if any byte is no UTF-8
    found = [data[p.col_offset : p.end_col_offset].decode() for p in parts]
    values = tuple(dict.fromkeys(found if len(spread.splitlines()) == 1 else []))
    if not values or len(values) > MANY:
        what = f"more than {MANY:,} values" if values else "no list of values"
        raise bad_value(f"{where}: `{text.strip()}` is {what}", _FORMS)
    return values


def _spread(match: re.Match[str], where: str) -> str:
    first, last, factor = int(match[1]), int(match[2]), int(match[3] or 0)
    values = [*range(first, min(last, first + MANY) + 1)]
    if match[3]:
        values = [first * factor**n for n in range(64)] if first and factor > 1 else []
        values = [value for value in values if value <= last]
    if not values:
        raise bad_value(f"{where}: the range `{match[0]}` is empty", _FORMS)
    return ",".join(map(str, values))


def _places(body: Sequence[nodes.Node], prefix: str) -> Iterator[tuple[str, Span]]:
    """Yield every named value of a file or a class: its full name, and where it is."""
    for statement in body:
        if isinstance(statement, nodes.ClassDef):
            yield from _places(statement.body, f"{prefix}{statement.name}.")
        elif isinstance(statement, nodes.FunctionDef):
            for name, default in _defaults(statement.args):
                yield f"{prefix}{statement.name}.{name}", default.span
        elif isinstance(statement, nodes.Assign | nodes.AnnAssign) and statement.value is not None:
            targets = (
                statement.targets if isinstance(statement, nodes.Assign) else (statement.target,)
            )
            if isinstance(targets[0], nodes.Name):
                yield prefix + targets[0].id, statement.value.span


def _defaults(args: nodes.Arguments) -> Iterator[tuple[str, nodes.Node]]:
    several = [*args.posonlyargs, *args.args]
    for arg, default in zip(reversed(several), reversed(args.defaults), strict=False):
        yield arg.name, default
    for arg, other in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        if other is not None:
            yield arg.name, other


def _marked(source: SourceFile, places: Places) -> Iterator[Choice]:
    """Yield the choices that comments mark: `TILE = 512  # tune: 128, 256, 512`."""
    for number, line in enumerate(source.lines, 1):
        mark = _MARK.search(line)
        if mark is None:
            continue
        where = Span(source.path, number, mark.start() + 1, number, len(line) + 1)
        here = [
            (name, at)
            for name, at in places
            if at.end_line == number and at.end_column <= where.column
        ]
        if len(here) != 1:
            text = "this mark is beside no named value" if not here else "which value is marked?"
            help = "write `NAME = value  # tune: VALUES`, one to a line"
            raise refusal("bad-value", text, where, help=help)
        name, at = here[0]
        yield Choice(name, _values(mark[1], f"{where}: {name}"), source.text_of(at), at)


# ---- What is known about a point ----------------------------------------------------------------

_NUMBERS = re.compile(r"\d[\d,.]*(?: [KMG]?i?B\b)?")


@dataclass(frozen=True)
class Outcome:
    """A point and its evaluation: the compiler's estimate alone, or a run and a comparison."""

    point: Point
    evaluation: Evaluation

    @property
    def label(self) -> str:
        """The point in one line."""
        return label(self.point)

    @property
    def status(self) -> str:
        """The evaluation in one word: compiled is an estimate."""
        return self.evaluation.status

    @property
    def correct(self) -> bool:
        """Whether it was run and is right."""
        return self.evaluation.correct

    @property
    def open(self) -> bool:
        """Whether it compiles, and nothing speaks against it."""
        return self.status in ("correct", "compiled") and self.evaluation.time_ns is not None

    @property
    def program(self) -> tuple[str, ...]:
        """What identifies the compiled programs."""
        return tuple(self.evaluation.artifacts.values())

    @property
    def us(self) -> float:
        """The time in microseconds."""
        return (self.evaluation.time_ns or 0.0) / 1000

    @property
    def cost(self) -> tuple[float, int, bool]:
        """What orders points: time in four digits, since more decide nothing; SBUF; the level."""
        level = self.point.get(OPTIMISE, "1")
        return float(f"{self.us:.4g}"), self.evaluation.sbuf_bytes, level != "1"

    @property
    def reason(self) -> tuple[str, str]:
        """Why it is refused or wrong: the code of a diagnostic, if there is one, and a text."""
        errors = (d for d in self.evaluation.diagnostics if d.get("level") == "error")
        first = next(errors, {"code": "", "message": self.evaluation.reason})
        return ("", "") if self.open else (str(first["code"]), str(first["message"]))

    @property
    def kind(self) -> tuple[str, str, str]:
        """What failures for one reason have in common: the text without its numbers."""
        code, text = self.reason
        return self.status, code, _NUMBERS.sub("N", text)


# ------------------------------------------------------------------------------------------------
# A picture of the points of a tuning: time across, bytes of SBUF upwards, and the front.

HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 480, 84, 24, 70, 52
TICKS = 5
# Status, words, and the class of its colour.
KINDS = (
    ("correct", "compared, and right", "c0"),
    ("compiled", "estimated alone", "c7"),
    ("", "wrong", "c5"),
)
MORE = ".front { fill: none; stroke: #3b5bdb; } .ring { fill: none; stroke: #2b8a3e; }\n"


class Dot(NamedTuple):
    """A point in the picture."""

    name: str
    status: str
    us: float
    sbuf_bytes: int
    on_front: bool
    best: bool

    @property
    def kind(self) -> int:
        """The number of its row in `KINDS`."""
        return next(n for n, kind in enumerate(KINDS) if kind[0] in (self.status, ""))


def svg(title: str, dots: Sequence[Dot]) -> str:
    """Return the picture, which follows the viewer's light or dark mode."""
    heading = escape(clean(title))
    most = max((dot.sbuf_bytes for dot in dots), default=0)
    unit = 1 << 10 * min(2, max(0, most.bit_length() - 1) // 10)  # the one that `size` takes
    time = _top(max((dot.us for dot in dots), default=0.0))
    plot = _Plot(time, _top(most / unit) * unit)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{heading}">',
        f"<style>{STYLE}{MORE}</style>",
        picture(LEFT, 24, title),
        *_legend(),
        *plot.axes(),
        *plot.front([dot for dot in dots if dot.on_front]),
        *(part for dot in sorted(dots, key=lambda d: -d.kind) for part in plot.dot(dot)),
    ]
    return "\n".join([*parts, "</svg>\n"])


def _top(most: float) -> float:
    """Return the end of an axis: a round number, at or above the most."""
    scale = 10 ** floor(log10(most)) if most > 0 else 1.0
    return next(n * scale for n in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if n * scale >= most)


def _legend() -> Iterator[str]:
    left = float(LEFT)
    for _, words, colour in KINDS:
        yield f'<circle class="{colour}" cx="{left + 5:.1f}" cy="44" r="5"/>'
        yield picture(left + 16, 48, words, "soft")
        left += 40 + LETTERS * len(words)
    yield f'<circle class="ring" cx="{left + 5:.1f}" cy="44" r="7" stroke-width="2"/>'
    yield picture(left + 18, 48, "the best; line: none is both faster and smaller", "soft")


class _Plot(NamedTuple):
    """The area of the points: its last microsecond, and its last byte."""

    time: float
    bytes: float

    def x(self, us: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * us / self.time

    def y(self, count: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * count / self.bytes

    def axes(self) -> Iterator[str]:
        yield rect(LEFT, TOP, WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM, "frame")
        for tick in range(TICKS + 1):
            us, count = self.time * tick / TICKS, self.bytes * tick / TICKS
            x, y = f"{self.x(us):.1f}", f"{self.y(count):.1f}"
            lines = f"M{x},{TOP}V{HEIGHT - BOTTOM}M{LEFT},{y}H{WIDTH - RIGHT}"
            yield f'<path class="grid" d="{lines}"/>'
            yield picture(self.x(us), HEIGHT - BOTTOM + 18, f"{us:,.4g}", "soft", "middle")
            yield picture(LEFT - 8, self.y(count) + 4, size(round(count)), "soft", "end")
        yield picture(WIDTH / 2, HEIGHT - 12, "time in us", "soft", "middle")
        yield picture(LEFT - 8, TOP - 10, "SBUF", "soft", "end")

    def front(self, dots: Sequence[Dot]) -> Iterator[str]:
        ordered = sorted(dots, key=lambda dot: dot.us)
        places = [(self.x(d.us), self.y(d.sbuf_bytes)) for d in ordered]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        yield f'<polyline class="front" points="{points}"/>'

    def dot(self, dot: Dot) -> Iterator[str]:
        x, y = self.x(dot.us), self.y(dot.sbuf_bytes)
        about = f"{dot.name}: {dot.status}, {dot.us:,.2f} us, {size(dot.sbuf_bytes)}"
        colour = KINDS[dot.kind][2]
        yield (
            f'<circle class="{colour}" cx="{x:.1f}" cy="{y:.1f}" r="5">'
            f"<title>{escape(clean(about))}</title></circle>"
        )
        if dot.best:
            yield f'<circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="9" stroke-width="2"/>'
        if dot.on_front:
            is_right = x > WIDTH / 2  # there is room on the left, below the line
            anchor = "end" if is_right else "start"
            yield picture(x - 10 if is_right else x + 10, y + 18, dot.name, "", anchor)


# ------------------------------------------------------------------------------------------------
# What a tuning found: the ranked points, the front of time and SBUF, and why others fail.

SCHEMA = 1
SHOWN = 20  # rows of the table


def front(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the points than which none is both faster and smaller, the fastest first."""
    found: list[Outcome] = []
    for outcome in sorted(outcomes, key=lambda o: o.cost):
        if not found or outcome.cost[1] < found[-1].cost[1]:
            found.append(outcome)
    return found


@dataclass(frozen=True)
class Tuned:
    """The result of a tuning, or of a part of it.

    `over` says that its time was over before its end, `stopped` why an exception ended it, if one
    did, and `kept` that a file keeps its evaluations.
    """

    space: Space
    outcomes: Sequence[Outcome]
    over: bool = False
    stopped: str = ""
    kept: bool = False

    @property
    def correct(self) -> list[Outcome]:
        """The points that were run and are right, the fastest first, then the smallest."""
        return sorted((o for o in self.outcomes if o.correct), key=lambda o: o.cost)

    @cached_property
    def distinct(self) -> dict[tuple[str, ...], list[Outcome]]:
        """The correct points by the programs that they compile to, the fastest first."""
        found: dict[tuple[str, ...], list[Outcome]] = {}
        for outcome in self.correct:
            found.setdefault(outcome.program, []).append(outcome)
        return found

    @property
    def best(self) -> Outcome | None:
        """The fastest point of those that were compared with the reference; None without one."""
        return next(iter(self.correct), None)

    @property
    def front(self) -> list[Outcome]:
        """The correct points than which no correct one is both faster and smaller."""
        return front(self.correct)

    @property
    def text(self) -> str:
        """The kernel's text with the best choices; as it is without a best point."""
        return self.space.text(self.best.point) if self.best else self.space.source.text

    @property
    def svg(self) -> str:
        """A picture of time and SBUF of all points that compile."""
        best, edge = self.best, {o.label for o in self.front}
        dots = [
            Dot(o.label, o.status, o.us, o.cost[1], o.label in edge, o is best)
            for o in self.outcomes
            if o.evaluation.time_ns is not None
        ]
        return svg(f"{self.space.source.path}: {self.counts}", dots)

    @cached_property
    def places(self) -> dict[tuple[str, ...], Placed]:
        """The places of the correct programs: each is a band."""
        found = placed([group[0].evaluation for group in self.distinct.values()])
        by_program = {tuple(p.evaluation.artifacts.values()): p for p in found}
        return {program: by_program[program] for program in self.distinct}

    @property
    def counts(self) -> str:
        """How many points there are, and what became of them."""
        by_status: dict[str, int] = defaultdict(int)
        for outcome in self.outcomes:
            by_status[outcome.status] += 1
        names = {"compiled": "estimated alone"}
        told = [f"{n:,} {names.get(name, name)}" for name, n in sorted(by_status.items())]
        untried = self.space.size - len(self.outcomes)
        told += [f"{untried:,} not tried"] if untried else []
        return f"{plural(self.space.size, 'point')}: {', '.join(told)}"

    @property
    def table(self) -> str:
        parts = [aligned([*self._rows()], right=(2, 3))] if self.correct else []
        failures = [*self._failures()]
        parts += [aligned(failures, right=(0,))] if failures else []
        parts += [f"{line}\n" for line in (self.counts, *self._remarks())]
        return "".join(parts)

    def _rows(self) -> Iterator[tuple[str, ...]]:
        yield "place", "point", "us", "SBUF", ""
        edge, present = {o.label for o in self.front}, label(self.space.present)
        for group in islice(self.distinct.values(), SHOWN):
            outcome, names = group[0], {o.label for o in group}
            place = self.places[outcome.program]
            words = ["the best"] if outcome is self.best else []
            if place.worth_a_device and outcome is not self.best:
                words.append("not distinguishable from the best")
            words += ["on the front"] if names & edge else []
            words += ["as the file is"] if present in names else []
            words += [f"the same program as {plural(len(group) - 1, 'other')}"] * (len(group) > 1)
            reserved = size(outcome.evaluation.sbuf_bytes)
            yield place.words, outcome.label, f"{outcome.us:,.2f}", reserved, "; ".join(words)

    def _failures(self) -> Iterator[tuple[str, ...]]:
        """Yield the reasons why points fail: how many points, and what the first of them says."""
        for (status, code, _), group in self.failures.items():
            example = f"{clean(group[0].reason[1])} ({group[0].label})"
            yield plural(len(group), "point"), status, code, example

    @cached_property
    def failures(self) -> dict[tuple[str, str, str], list[Outcome]]:
        """The points that fail by reason, the most frequent first: status, code, and message
        without its numbers.
        """
        kinds: dict[tuple[str, str, str], list[Outcome]] = defaultdict(list)
        for outcome in self.outcomes:
            if not outcome.open:
                kinds[outcome.kind].append(outcome)
        return dict(sorted(kinds.items(), key=lambda pair: (-len(pair[1]), pair[0])))

    def _remarks(self) -> Iterator[str]:
        """Yield what a person must know to use the result."""
        if self.best is None:
            yield "no point was compared with the reference and is right"
            if standing := sorted((o for o in self.outcomes if o.open), key=lambda o: o.cost):
                yield f"the fastest estimate: {standing[0].label}, {standing[0].us:,.2f} us"
        elif self.best.point.get(OPTIMISE, "1") != "1":
            level = self.best.point[OPTIMISE]
            yield f"the best is compiled with -O {level}: write `optimise = {level}` into the task"
        if self.over or self.stopped:
            cause = self.stopped or "the time of --budget is over"
            yield cause if self.kept else f"{cause}; with --results FILE a tuning continues"
        for choice in self.space.choices:
            programs = defaultdict(set)
            for o in self.outcomes:
                if o.evaluation.time_ns is not None:
                    others = tuple(v for name, v in o.point.items() if name != choice.name)
                    programs[others].add((o.point[choice.name], o.program))
            several = [found for found in programs.values() if len(found) > 1]
            if several and all(len({program for _, program in found}) == 1 for found in several):
                yield f"`{choice.name}` changes nothing: the compiled programs are equal"

    def jsonl(self) -> str:
        """Every point as a line of JSON: the correct ones first, by place."""
        edge = {o.label for o in self.front}
        others = [outcome for outcome in self.outcomes if not outcome.correct]
        return "".join(self._line(o, o.label in edge) for o in [*self.correct, *others])

    def _line(self, outcome: Outcome, on_front: bool) -> str:
        place, (code, reason) = self.places.get(outcome.program), outcome.reason
        found = outcome.evaluation
        record = {
            "schema": SCHEMA,
            "point": outcome.point,
            "status": outcome.status,
            "code": code,
            "reason": reason,
            "time_ns": found.time_ns,
            "sbuf_bytes": found.sbuf_bytes,
            "candidate_sha256": found.candidate_sha256,
            "artifacts": found.artifacts,
            "front": on_front,
            "place": [place.best, place.worst] if place and outcome.correct else None,
            "worth_a_device": bool(place and outcome.correct and place.worth_a_device),
        }
        return json.dumps(record, allow_nan=False, sort_keys=True) + "\n"


# --------------------------------------------------------------------------------------------------

TRIALS, BEST = 200, 8
MAX_BYTES = 64 << 20  # size of a kernel's file
ESTIMATES = 0.8  # of the time that is allowed: the rest is for comparing the best
ASKS = 20  # for each trial, of a search that repeats itself


@public(UsageFailed)
def tune(
    kernel: FilePath | SourceFile,
    task: FilePath | Task,
    vary: Mapping[str, str | Sequence[Any]] | None = None,
    *,
    jobs: Count = 1,
    cluster: str | None = None,
    trials: Count = TRIALS,
    best: Count = BEST,
    seed: Seed = 0,
    budget: Seconds | None = None,
    results: FilePath | None = None,
    told: Callable[[str], None] = lambda text: None,
    stopped: Callable[[Tuned], None] = lambda found: None,
) -> Tuned:
    """Find the values of a kernel's choices with which it is fastest, and right.

    `vary` has the values by choice (`{"tile": [128, 256], "-O": "0..2"}`); without it they are
    those that the file marks. At most `trials` points are compiled, `jobs` at a time here, or on
    the `cluster` at an address: all of a space that has no more, otherwise those that Optuna asks
    for, as many at a time as are judged at a time. The `best` by the compiler's
    estimate, and the front of time and SBUF, are run and compared with the reference. `budget` is
    in seconds. `results` is a file that keeps evaluations, with which a tuning that was stopped
    continues. `told` hears about each point, and `stopped` what was found before an exception, such
    as that of an interrupt, ends the tuning. Raises `UsageFailed`, or `CompileFailed` for a file
    that cannot be read.
    """
    if not isinstance(kernel, SourceFile):
        path = os.fspath(kernel)
        kernel = decode(files.read_bytes(path, MAX_BYTES), path)
    task = task if isinstance(task, Task) else read_task(task)
    space = space_of(kernel, task, vary or {})
    if space.size > trials:
        text = f"{space.size:,} points are more than the {trials:,} trials, and a search needs"
        need(text, "optuna", instead=f"; or --trials {space.size} to try them all")
    kept = results is not None
    database = Results(results) if results is not None else None
    with pool_of(cluster, jobs) as pool:
        tuner = _Tuner(space, task, database, budget, told, pool)
        try:
            tuner.estimate(trials, seed)
            cut, tuner.over = tuner.over, False
            tuner.compare(best)
        except BaseException as error:  # before the pool is closed, which may take longer
            why = "an error ended it" if isinstance(error, Exception) else "it was stopped"
            stopped(Tuned(space, tuple(tuner.found.values()), stopped=why, kept=kept))
            raise
    return Tuned(space, tuple(tuner.found.values()), cut or tuner.over, kept=kept)


class _Tuner:
    """One tuning: what it has found, by point."""

    def __init__(
        self,
        space: Space,
        task: Task,
        results: Results | None,
        budget: float | None,
        told: Callable[[str], None],
        pool: Pool,
    ) -> None:
        self.space, self.told, self.pool = space, told, pool
        self.began, self.budget, self.over = time.monotonic(), budget, False
        self.found: dict[str, Outcome] = {}
        self.judges: dict[tuple[str, bool], Judge] = {}
        levels = [choice.values for choice in space.choices if choice.name == OPTIMISE]
        for level in levels[0] if levels else ("",):
            head = f"optimise = {level}\n".encode() + task.toml
            at_level = task_of(head, task.files, task.folder) if level else task
            for runs in (False, True):
                self.judges[level, runs] = Judge(
                    at_level,
                    families=False,
                    sensitivity=False,
                    time_only=not runs,
                    results=results,
                )

    # ---- estimates ----

    def estimate(self, trials: int, seed: int) -> None:
        """Compile all points, or as many as there are trials."""
        if self.space.size <= trials:
            self._outcomes([*self.space.points()], runs=False)
        else:
            self._search(trials, seed)

    def _search(self, trials: int, seed: int) -> None:
        import optuna  # an extra

        jobs = self.pool.depth  # once: a cluster that grows would make the search another one
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=jobs > 1)
        study = optuna.create_study(sampler=sampler)
        study.enqueue_trial({c.name: _index(c.values, c.present) for c in self.space.choices})
        pruned = optuna.trial.TrialState.PRUNED
        for _ in range(ASKS * trials // jobs):
            if self.over or len(self.found) >= trials:
                break
            asked = [study.ask() for _ in range(jobs)]
            points = [self._asked(trial) for trial in asked]
            new = {label(p): p for p in points if label(p) not in self.found}
            self._outcomes([*islice(new.values(), trials - len(self.found))], runs=False)
            for trial, point in zip(asked, points, strict=True):
                outcome = self.found.get(label(point))
                if outcome is not None and outcome.open:
                    study.tell(trial, outcome.us)
                else:
                    study.tell(trial, state=pruned)

    def _asked(self, trial: Any) -> Point:
        """Return the point of a trial, which is made of the numbers of the values."""
        return {
            c.name: c.values[trial.suggest_int(c.name, 0, len(c.values) - 1)]
            for c in self.space.choices
        }

    # ---- comparisons ----

    def compare(self, best: int) -> None:
        """Run points until the best, and the front, are ones that were compared.

        Points that compile to the same programs are compared once.
        """
        first = True
        while first or not self.over:
            standing = [outcome for outcome in self.found.values() if outcome.open]
            programs: dict[tuple[str, ...], Outcome] = {}
            for outcome in sorted(standing, key=lambda o: o.cost):
                programs.setdefault(outcome.program, outcome)
            leading = {o.label: o for o in [*islice(programs.values(), best), *front(standing)]}
            wanted = {o.program: o for o in leading.values() if not o.correct}
            if not wanted:
                break
            self._outcomes([o.point for o in wanted.values()], runs=True, must=first)
            first = False
            for name, outcome in self.found.items():
                ran = (
                    self.found[wanted[outcome.program].label] if outcome.program in wanted else None
                )
                if ran is not None and ran.status != "compiled" and outcome.status == "compiled":
                    self.found[name] = replace(ran, point=outcome.point)

    # ---- one point ----

    def _outcomes(self, points: Sequence[Point], runs: bool, must: bool = False) -> None:
        """Find out about points, several at a time; of fewer of them if the time is over."""
        until = inf
        if self.budget is not None and not must:
            until = self.began + self.budget * (1 if runs else ESTIMATES)
        begun: list[Point] = []

        def trials() -> Iterator[tuple[Judge, Candidate]]:
            for point in points:
                judge = self.judges[point.get(OPTIMISE, ""), runs]
                candidate = Candidate.of_text(self.space.text(point), self.space.source.path)
                if time.monotonic() < until or judge.known(candidate) is not None:
                    begun.append(point)
                    yield judge, candidate

        done: dict[int, Outcome] = {}
        try:
            for number, found in self.pool.as_they_come(trials(), until):
                outcome = done[number] = Outcome(begun[number], found)
                self.told(f"{outcome.label}: {outcome.status}")
            self.over = self.over or len(done) < len(points)
        finally:  # also of what came before an interrupt, whatever the order
            self.found.update((done[number].label, done[number]) for number in sorted(done))


def _index(values: Sequence[str], present: str) -> int:
    return values.index(present) if present in values else 0
