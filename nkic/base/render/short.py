"""One line per diagnostic: `path:line:col: error[NKI0312]: message`, for grep and editors."""

from __future__ import annotations

from nkic.base.diagnostics import Diagnostic
from nkic.base.render.paint import PLAIN, Paint
from nkic.base.source import Span
from nkic.base.text import clean, plural


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
