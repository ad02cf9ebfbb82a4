"""Map places in a rewritten text back to the original text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher

from nkic.base.diagnostics import Diagnostic, Label


def moved_back(diagnostics: Sequence[Diagnostic], old: str, new: str) -> Iterator[Diagnostic]:
    """Yield the diagnostics about `new` with the corresponding lines of `old`."""
    if not diagnostics or old == new:
        yield from diagnostics
        return
    lines = _lines(old.splitlines(), new.splitlines())
    for diagnostic in diagnostics:
        if diagnostic.primary is None:
            yield diagnostic
            continue
        span, text = diagnostic.primary.span, diagnostic.primary.text
        line = lines.get(span.line, span.line)
        moved = span._replace(line=line, end_line=line + span.end_line - span.line)
        yield replace(diagnostic, primary=Label(moved, text))


def _lines(old: list[str], new: list[str]) -> dict[int, int]:
    """Return, for each line of `new` from 1, the line of `old` that it was, or that it replaced."""
    old_lines: dict[int, int] = {}
    for _, start, end, first, last in SequenceMatcher(None, old, new, False).get_opcodes():
        for line in range(first, last):
            old_lines[line + 1] = min(start + line - first, max(end - 1, start)) + 1
    return old_lines
