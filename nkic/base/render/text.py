"""A diagnostic for people: a header, the source with labels, notes, help and fixes.

kernel.py:12:9: error[NKI0501]: …
   |
12 |     a = nl.ndarray(…)
   |         ^^^^^^^^^^^^^ label
   |
   = note: …
   = help: …
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from nkic.base.diagnostics import Diagnostic, Label, Level, to_json
from nkic.base.render import PLAIN, Paint
from nkic.base.source import SourceFile, Sources, Span
from nkic.base.text import ascii_only, clean, plural, width

# ---- Source lines with labelled places underlined -----------------------------------------------
# All positions here are terminal cells of the printed line: tabs are expanded, control characters
# escaped, and wide characters count as two.

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
            if number == previous + 2 and len(source.line(previous + 1)) <= MAX_LINE_CHARACTERS:
                yield source_line(previous + 1, source.line(previous + 1), gutter, paint)
            elif number > previous + 1:
                yield paint("...", "frame")
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


# ------------------------------------------------------------------------------------------------
# One line per diagnostic: `path:line:col: error[NKI0312]: message`, for grep and editors.


def header(diagnostic: Diagnostic, paint: Paint = PLAIN) -> str:
    """Return the line, which is never wrapped or cut."""
    level = diagnostic.level.value
    kind = paint(f"{level}[{diagnostic.code.number}]", level)
    message = paint(clean(diagnostic.message), "message")
    location = f"{position(diagnostic.primary.span)}: " if diagnostic.primary else ""
    return f"{location}{kind}: {message}{repetition(diagnostic.count)}"


def position(span: Span) -> str:
    """Return `path:line:col`; only the path for a span of a whole file (line 0)."""
    path = clean(span.path)
    return f"{path}:{span.line}:{span.column}" if span.line else path


def repetition(count: int) -> str:
    """Return the text appended to a diagnostic that represents `count` equal ones."""
    return f" (and {plural(count - 1, 'more time', 'more times')})" if count > 1 else ""


# --------------------------------------------------------------------------------------------------


def render(diagnostic: Diagnostic, sources: Sources, paint: Paint = PLAIN) -> str:
    """Return the whole text with line endings. Source that `sources` lacks is omitted."""
    gutter = _gutter(diagnostic)
    lines = [header(diagnostic, paint)]
    shown = [*_excerpts(diagnostic, sources, paint, gutter)]
    remarks = [*_remarks(diagnostic, paint, gutter), *_fixes(diagnostic, sources, paint, gutter)]
    lines += shown
    if shown and remarks:
        lines.append(gutter_line("", gutter, paint))
    return "\n".join([*lines, *remarks, ""])


def _gutter(diagnostic: Diagnostic) -> int:
    """Return the number of digits of the largest line number that may be shown."""
    spans = [shown.label.span for shown in _labels(diagnostic)]
    spans += [fix.span for fix in diagnostic.fixes]
    return max((len(str(span.end_line)) for span in spans), default=1)


def _labels(diagnostic: Diagnostic) -> list[ShownLabel]:
    primary = [ShownLabel(diagnostic.primary, True)] if diagnostic.primary else []
    return primary + [ShownLabel(label, False) for label in diagnostic.labels]


def _excerpts(diagnostic: Diagnostic, sources: Sources, paint: Paint, gutter: int) -> Iterator[str]:
    """Yield excerpts by file, in the order of the labels, the primary one first."""
    labels = _labels(diagnostic)
    for path in dict.fromkeys(shown.label.span.path for shown in labels):
        in_file = [shown for shown in labels if shown.label.span.path == path]
        source = sources(path)
        visible = [shown for shown in in_file if source and shows(source, shown.label.span)]
        if source and visible:
            if not any(shown.primary for shown in in_file):
                yield _arrow(position(visible[0].label.span), paint, gutter)
            yield gutter_line("", gutter, paint)
            yield from excerpt(source, visible, diagnostic.level.value, paint, gutter)
        hidden = (shown.label for shown in in_file if shown not in visible and _says_more(shown))
        yield from (_arrow(_in_words(label), paint, gutter) for label in hidden)


def _says_more(shown: ShownLabel) -> bool:
    """Return whether a label that cannot be shown adds to the header."""
    return bool(shown.label.text) or not shown.primary


def _in_words(label: Label) -> str:
    return position(label.span) + (f": {clean(label.text)}" if label.text else "")


def _arrow(text: str, paint: Paint, gutter: int) -> str:
    return " " * gutter + paint("--> ", "frame") + text


def _remarks(diagnostic: Diagnostic, paint: Paint, gutter: int) -> Iterator[str]:
    for note in diagnostic.notes:
        yield from _remark("note", note, paint, gutter)
    if diagnostic.help:
        yield from _remark("help", diagnostic.help, paint, gutter)


def _remark(kind: str, text: str, paint: Paint, gutter: int) -> Iterator[str]:
    """Yield `= kind: text`; further lines of the text are aligned with the first."""
    first, *continuation = clean(text, keep="\n").split("\n")
    yield f"{' ' * gutter} {paint('=', 'frame')} {paint(kind + ':', 'message')} {first}".rstrip()
    indent = " " * (gutter + len(kind) + 5)
    for line in continuation:
        yield f"{indent}{line}".rstrip()


def _fixes(diagnostic: Diagnostic, sources: Sources, paint: Paint, gutter: int) -> Iterator[str]:
    for fix in diagnostic.fixes:
        source = sources(fix.span.path)
        kind = "fix" if fix.sure else "possible fix"
        if source and shows(source, fix.span):
            yield from _remark(kind, fix.title, paint, gutter)
            span = fix.span
            for number in range(span.line, min(span.end_line, len(source.lines)) + 1):
                yield source_line(number, source.line(number), gutter, paint, "-")
            for number, line in enumerate(_fixed(source, span, fix.replacement), span.line):
                yield source_line(number, line, gutter, paint, "+")
        else:
            text = f"{fix.title}: `{fix.replacement}` at {position(fix.span)}"
            yield from _remark(kind, text, paint, gutter)


def _fixed(source: SourceFile, span: Span, replacement: str) -> list[str]:
    before = source.line(span.line)[: max(span.column - 1, 0)]
    after = source.line(span.end_line)[max(span.end_column - 1, 0) :]
    return f"{before}{replacement}{after}".split("\n")


# ------------------------------------------------------------------------------------------------
# Diagnostics as workflow commands, which GitHub shows beside the lines of a pull request.
# Source: GitHub's documentation, workflow commands. Columns are given only within one line,
# because annotations have none across several.

COMMANDS = {Level.ERROR: "error", Level.WARNING: "warning", Level.REMARK: "notice"}


def github_line(diagnostic: Diagnostic, path_of: Callable[[str], str] = str) -> str:
    """Return the command, one line; `path_of` converts paths to be relative to the root."""
    location = [*_properties(diagnostic.primary.span, path_of)] if diagnostic.primary else []
    code = diagnostic.code
    properties = [*location, ("title", f"{code.number} {code.slug}")]
    written = ",".join(f"{name}={_property(value)}" for name, value in properties)
    return f"::{COMMANDS[diagnostic.level]} {written}::{_data(_message(diagnostic))}\n"


def harmless(text: str) -> str:
    """Return text of a kernel, with lines escaped that GitHub would interpret as commands."""
    lines = text.replace("##[", "## [").split("\n")
    return "\n".join(f"| {line}" if line.lstrip().startswith("::") else line for line in lines)


def _properties(span: Span, path_of: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    yield "file", path_of(span.path)
    if span.line < 1:  # for the file as a whole
        return
    yield "line", str(span.line)
    yield "endLine", str(max(span.line, span.end_line))
    if span.end_line == span.line and span.column >= 1:
        yield "col", str(span.column)
        yield "endColumn", str(max(span.column, span.end_column))


def _message(diagnostic: Diagnostic) -> str:
    paragraphs = [diagnostic.message + repetition(diagnostic.count)]
    paragraphs += [f"note: {note}" for note in diagnostic.notes]
    paragraphs += [f"help: {diagnostic.help}"] if diagnostic.help else []
    return clean("\n".join(paragraphs), keep="\n")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(clean(text, keep="\r\n")).replace(":", "%3A").replace(",", "%2C")


# ---- Diagnostics and events for programs: one JSON object per line ------------------------------
# diagnostic.schema.json in this folder describes the objects. Readers should accept unknown
# fields: `schema` changes only when the meaning of a field changes.

SCHEMA = 1


def json_line(diagnostic: Diagnostic, sources: Sources) -> str:
    """Return the diagnostic as a line; `rendered` is its text for people, without colour."""
    (record,) = to_json([diagnostic])
    return event("diagnostic", **record, rendered=render(diagnostic, sources))


def event(type: str, /, **fields: object) -> str:
    """Return an event of any type as a line of pure ASCII, which no stream's encoding can alter.

    Floats must be finite. Lone surrogates (from undecodable file names) are escaped.
    """
    record = valid({"schema": SCHEMA, "type": type, **fields})
    return json.dumps(record, allow_nan=False, ensure_ascii=True) + "\n"


def valid(value: object) -> object:
    """Return a value for JSON with lone surrogates escaped, which no encoding accepts."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {valid(key): valid(item) for key, item in value.items()}
    return [valid(item) for item in value] if isinstance(value, (list, tuple)) else value
