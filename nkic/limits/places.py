"""The encoding of places on the shared page: numbers first, since a path may contain anything."""

from __future__ import annotations

from nkic.base.source import Span
from nkic.limits import watcher


def note(span: Span) -> None:
    """Tell the watcher, if any, the current place. Its path must be printable."""
    page = watcher.page()
    if page is not None:
        page.see("\n".join(map(str, (*span[1:], span.path))))


def read(text: str) -> Span | None:
    """Parse a recorded place; None if it is not one."""
    words = text.split("\n", 4)
    if len(words) < 5:
        return None
    line, column, end_line, end_column = map(int, words[:4])
    return Span(words[4], line, column, end_line, end_column)
