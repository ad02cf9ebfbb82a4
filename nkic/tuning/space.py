"""The choices of a kernel: the named values in its text, and which values to try for each.

A named value is `NAME = value` in a file or a class, or the default of a function's parameter. Its
full name is dotted: `TILE`, `Config.tile`, `kernel.tile`. A point is written into the text by
replacing these values where they stand, so that it is a kernel's file like any other.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, product
from math import prod
from typing import Any, NamedTuple

from nkic.base.diagnostics import bad_value, refusal
from nkic.base.source import SourceFile, Span
from nkic.base.suggest import suggestion
from nkic.base.text import listed
from nkic.judge import Task
from nkic.parse import parse
from nkic.syntax import nodes

OPTIMISE = "-O"  # the choice that is not in the text
MANY = 10_000  # values of a choice
_RANGE = re.compile(r"(?<![\w.])(\d{1,9})\.\.(\d{1,9})(?:\*(\d{1,9}))?(?![\w.])")
_MARK = re.compile(r"#[ \t]*tune:(.*)")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
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
        """The number of points."""
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
        """Return the kernel's text at a point."""
        text = self.source.text
        starts = [0, *accumulate(len(line) for line in _LINE.findall(text))]
        placed = [(choice.at, point[choice.name]) for choice in self.choices if choice.at]
        for at, value in sorted(placed, reverse=True):
            first, last = starts[at.line - 1] + at.column - 1, starts[at.end_line - 1]
            text = text[:first] + value + text[last + at.end_column - 1 :]
        return text


def label(point: Point) -> str:
    """Return a point as a table shows it."""
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
        _check_fixed(task, choice)
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
    data = spread.encode()
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


def _check_fixed(task: Task, choice: Choice) -> None:
    """Raise `UsageFailed` if the task sets what is to be varied."""
    name = choice.name.rpartition(".")[2]
    fixed = [case.name for case in task.cases if choice.at and name in case.consts]
    if fixed:
        text = f"`{name}` is varied, but the task sets it: consts of case {fixed[0]}"
        raise bad_value(text, "remove it there, so that the kernel's default holds")
    if choice.name == OPTIMISE and task.optimise is not None:
        raise bad_value("-O is varied, but the task sets it", "remove `optimise` there")
