"""Source lines with labelled places underlined.

All positions here are terminal cells of the printed line: tabs are expanded, control characters
escaped, and wide characters count as two.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from nkic.base.diagnostics import Label
from nkic.base.render.paint import Paint
from nkic.base.source import SourceFile, Span
from nkic.base.text import ascii_only, clean, width

TAB = 4
MAX_LINE_CHARACTERS = 1000  # characters; places in longer lines are described in words
HEAD, TAIL = 3, 1  # lines shown of a longer place


class ShownLabel(NamedTuple):
    """A label, and whether it is the primary one."""

    label: Label
    primary: bool


class Mark(NamedTuple):
    """The part of a place on one line: cells `start` to `end` (exclusive)."""

    line: int
    start: int
    end: int
    primary: bool
    text: str


class Shown(NamedTuple):
    """A source line as printed, and the start cell of each character (and of the end)."""

    text: str
    starts: Sequence[int]


def shows(source: SourceFile, span: Span) -> bool:
    """Return whether the lines of `span` exist and can be shown."""
    if not 1 <= span.line <= len(source.lines):
        return False
    return all(len(source.line(number)) <= MAX_LINE_CHARACTERS for number in _line_numbers(span))


def excerpt(
    source: SourceFile, labels: Iterable[ShownLabel], level: str, paint: Paint, gutter: int
) -> Iterator[str]:
    """Yield the lines of `labels` in order, with dots for omitted lines."""
    marks = [mark for shown in labels for mark in _marks(source, shown, paint)]
    previous = None
    for number, group in groupby(sorted(marks, key=_order), key=lambda mark: mark.line):
        if previous is not None:
            yield from _between(source, previous, number, gutter, paint)
        yield source_line(number, source.line(number), gutter, paint)
        for row in _rows(list(group), level, paint):
            yield gutter_line(row, gutter, paint)
        previous = number


def source_line(number: int, text: str, gutter: int, paint: Paint, sign: str = "|") -> str:
    """Format `12 | text`; the signs - and + mark lines of a change."""
    shown = _shown(text, paint).text
    role = {"-": "removed", "+": "added"}.get(sign)
    head = paint(f"{number:>{gutter}} {sign}", role or "frame")
    return f"{head} {paint(shown, role) if role else shown}".rstrip()


def gutter_line(row: str, gutter: int, paint: Paint) -> str:
    """Format a line without a number: `   | row`."""
    return f"{' ' * gutter} {paint('|', 'frame')} {row}".rstrip()


def _between(
    source: SourceFile, previous: int, number: int, gutter: int, paint: Paint
) -> Iterator[str]:
    """Yield the representation of lines between two shown ones: dots, or a single line."""
    if number == previous + 2 and len(source.line(previous + 1)) <= MAX_LINE_CHARACTERS:
        yield source_line(previous + 1, source.line(previous + 1), gutter, paint)
    elif number > previous + 1:
        yield paint("...", "frame")


def _order(mark: Mark) -> tuple[int, int, int]:
    """Sort key: of marks with one start, longer ones first, so that shorter ones cover them."""
    return mark.line, mark.start, -mark.end


def _line_numbers(span: Span) -> list[int]:
    last = max(span.end_line, span.line)
    if last - span.line < HEAD + TAIL:
        return [*range(span.line, last + 1)]
    return [*range(span.line, span.line + HEAD), *range(last - TAIL + 1, last + 1)]


def _marks(source: SourceFile, shown: ShownLabel, paint: Paint) -> list[Mark]:
    """Return one mark per non-empty line of the place; the last one has the label."""
    span = shown.label.span
    numbers = [n for n in _line_numbers(span) if n == span.line or _has_part(source, span, n)]
    marks = [_mark(source.line(n), n, shown, paint) for n in numbers]
    marks[-1] = marks[-1]._replace(text=clean(shown.label.text))
    return marks


def _has_part(source: SourceFile, span: Span, number: int) -> bool:
    line = source.line(number)
    end = span.end_column - 1 if number == span.end_line else len(line)
    return bool(line[: max(end, 0)].strip())


def _mark(line: str, number: int, shown: ShownLabel, paint: Paint) -> Mark:
    """Return a mark, clipped to the line, and at least one cell wide."""
    span = shown.label.span
    starts = _shown(line, paint).starts
    indent = len(line) - len(line.lstrip())
    first = span.column - 1 if number == span.line else indent
    last = span.end_column - 1 if number == max(span.end_line, span.line) else len(line)
    start = starts[min(max(first, 0), len(line))]
    end = starts[min(max(last, 0), len(line))]
    return Mark(number, start, max(end, start + 1), shown.primary, "")


def _shown(line: str, paint: Paint) -> Shown:
    if line.isascii() and line.isprintable():
        return Shown(line, range(len(line) + 1))
    pieces: list[str] = []
    starts, at = [0], 0
    for char in line:
        piece = " " * (TAB - at % TAB) if char == "\t" else clean(char)
        pieces.append(ascii_only(piece) if paint.ascii else piece)
        at += width(pieces[-1])
        starts.append(at)
    return Shown("".join(pieces), starts)


def _rows(marks: Sequence[Mark], level: str, paint: Paint) -> Iterator[str]:
    """Yield the rows below a line: the marks, then labels that do not fit beside them.

    >>> marks = [Mark(1, 0, 3, True, "first"), Mark(1, 5, 6, False, "second")]
    >>> print(*_rows(marks, "error", Paint()), sep=chr(10))
    ^^^  - second
    |
    first
    """
    hanging = [mark for mark in marks if mark.text]
    canvas = _underlines(marks, level)
    end = max(mark.end for mark in marks)
    if hanging and hanging[-1].end == end:
        canvas.put(end + 1, hanging[-1].text, hanging[-1], level)
        hanging.pop()
    yield canvas.row(paint)
    if hanging:
        yield _bars(hanging, level).row(paint)
    while hanging:
        mark = hanging.pop()
        canvas = _bars([other for other in hanging if other.start < mark.start], level)
        canvas.put(mark.start, mark.text, mark, level)
        yield canvas.row(paint)


class _Canvas:
    """A row of cells with a character and a role each; later text covers earlier text."""

    def __init__(self) -> None:
        self.cells: dict[int, tuple[str, str]] = {}

    def put(self, at: int, text: str, mark: Mark, level: str) -> None:
        role = level if mark.primary else "frame"
        self.cells.update((at + i, (char, role)) for i, char in enumerate(text))

    def row(self, paint: Paint) -> str:
        last = max(self.cells, default=-1)
        cells = [self.cells.get(i, (" ", "")) for i in range(last + 1)]
        runs = groupby(cells, key=lambda cell: cell[1])
        texts = ((role, "".join(char for char, _ in run)) for role, run in runs)
        return "".join(paint(text, role) if role else text for role, text in texts)


def _underlines(marks: Sequence[Mark], level: str) -> _Canvas:
    canvas = _Canvas()
    for mark in sorted(marks, key=lambda mark: (mark.start - mark.end, mark.primary)):
        canvas.put(
            mark.start, ("^" if mark.primary else "-") * (mark.end - mark.start), mark, level
        )
    return canvas


def _bars(marks: Sequence[Mark], level: str) -> _Canvas:
    canvas = _Canvas()
    for mark in marks:
        canvas.put(mark.start, "|", mark, level)
    return canvas
