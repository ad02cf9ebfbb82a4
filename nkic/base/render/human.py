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

from collections.abc import Iterator

from nkic.base.diagnostics import Diagnostic, Fix, Label
from nkic.base.render.excerpt import ShownLabel, excerpt, gutter_line, shows, source_line
from nkic.base.render.paint import PLAIN, Paint
from nkic.base.render.short import header, position
from nkic.base.source import SourceFile, Sources, Span
from nkic.base.text import clean


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
            yield from _change(source, fix, paint, gutter)
        else:
            text = f"{fix.title}: `{fix.replacement}` at {position(fix.span)}"
            yield from _remark(kind, text, paint, gutter)


def _change(source: SourceFile, fix: Fix, paint: Paint, gutter: int) -> Iterator[str]:
    """Yield the lines changed by the fix, before and after, marked - and +."""
    span = fix.span
    for number in range(span.line, min(span.end_line, len(source.lines)) + 1):
        yield source_line(number, source.line(number), gutter, paint, "-")
    for number, line in enumerate(_fixed(source, span, fix.replacement), span.line):
        yield source_line(number, line, gutter, paint, "+")


def _fixed(source: SourceFile, span: Span, replacement: str) -> list[str]:
    before = source.line(span.line)[: max(span.column - 1, 0)]
    after = source.line(span.end_line)[max(span.end_column - 1, 0) :]
    return f"{before}{replacement}{after}".split("\n")
