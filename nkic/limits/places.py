"""Places as the shared page keeps them: numbers first, since a path may hold anything."""

from __future__ import annotations

from nkic.base.source import Span
from nkic.limits import watcher


def note(span: Span) -> None:
    """Tells the watcher where the work is, if there is one. The path is one to print."""
    page = watcher.page()
    if page is not None:
        page.see("\n".join(map(str, (*span[1:], span.path))))


def read(text: str) -> Span | None:
    """A place that was noted."""
    words = text.split("\n", 4)
    if len(words) < 5:
        return None
    line, column, end_line, end_column = map(int, words[:4])
    return Span(words[4], line, column, end_line, end_column)
