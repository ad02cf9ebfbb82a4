"""Places in a text that was already changed, told as those of the text as it was read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher

from nkic.base.diagnostics import Diagnostic, Label


def moved_back(found: Sequence[Diagnostic], old: str, new: str) -> Iterator[Diagnostic]:
    """The diagnostics about `new` at the lines of `old` that became theirs."""
    if not found or old == new:
        yield from found
        return
    lines = _lines(old.splitlines(), new.splitlines())
    for one in found:
        if one.primary is None:
            yield one
            continue
        span, text = one.primary.span, one.primary.text
        line = lines.get(span.line, span.line)
        moved = span._replace(line=line, end_line=line + span.end_line - span.line)
        yield replace(one, primary=Label(moved, text))


def _lines(old: list[str], new: list[str]) -> dict[int, int]:
    """For each line of `new`, from 1, the one of `old` that it was, or that stood in its place."""
    found: dict[int, int] = {}
    for _, start, end, first, last in SequenceMatcher(None, old, new, False).get_opcodes():
        for place in range(first, last):
            found[place + 1] = min(start + place - first, max(end - 1, start)) + 1
    return found
