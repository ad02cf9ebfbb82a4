"""Positions in kernel source.

Units are the same throughout nkic: lines and columns count from 1, columns in Unicode code points,
and `end_column` is just past the last character. Other units (SARIF, LSP, Python's UTF-8 byte
offsets) are converted on input and output.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple


class Span(NamedTuple):
    """A range of source text, from (line, column) to the end (exclusive)."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"

    def to(self, last: Span) -> Span:
        """Return the span from the start of this one to the end of `last`."""
        return Span(self.path, self.line, self.column, last.end_line, last.end_column)

    def covers(self, other: Span) -> bool:
        """Return whether `other` is within this span of the same file."""
        return self.path == other.path and self[1:3] <= other[1:3] and other[3:] <= self[3:]

    def meets(self, other: Span) -> bool:
        """Return whether the spans share a place, or touch, in the same file."""
        return self.path == other.path and self[1:3] <= other[3:] and other[1:3] <= self[3:]


SHIPPED = "<nkic"  # prefix of paths of kernel source that ships with nkic
NOWHERE = Span("<none>", 0, 0, 0, 0)


class CallChain(NamedTuple):
    """The origin of an instruction: `span` is the call, `caller` the chain of its caller.

    Chains are interned by the specialiser, so equal chains are one object.
    """

    span: Span
    caller: CallChain | None = None

    def frames(self) -> list[Span]:
        """Return all places, innermost first."""
        spans = []
        at: CallChain | None = self
        while at is not None:
            spans.append(at.span)
            at = at.caller
        return spans

    def user_frames(self) -> list[Span]:
        """Return the places in user files, innermost first; all places if there are none."""
        frames = self.frames()
        return [s for s in frames if not s.path.startswith(SHIPPED)] or frames

    @property
    def primary(self) -> Span:
        """The place for messages: the innermost one in user code."""
        return self.span if not self.span.path.startswith(SHIPPED) else self.user_frames()[0]


@dataclass(frozen=True)
class SourceFile:
    """The decoded text of a file; `path` is the path in diagnostics."""

    path: str
    text: str = field(repr=False)

    @cached_property
    def lines(self) -> list[str]:
        """The lines without line endings. As in Python, only LF, CRLF and CR end a line."""
        return self.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")

    def line(self, number: int) -> str:
        """Return line `number`, counted from 1; empty past the end."""
        return self.lines[number - 1] if 0 < number <= len(self.lines) else ""

    def text_of(self, span: Span) -> str:
        """Return the source text of `span`."""
        if span.line == span.end_line:
            return self.line(span.line)[span.column - 1 : span.end_column - 1]
        first = self.line(span.line)[span.column - 1 :]
        middle = [self.line(n) for n in range(span.line + 1, span.end_line)]
        return "\n".join([first, *middle, self.line(span.end_line)[: span.end_column - 1]])

    @cached_property
    def _starts(self) -> list[int]:
        """Where each line begins, and one behind the last."""
        ends = [end.end() for end in re.finditer(r"\r\n|\r|\n", self.text)]
        return [0, *ends, len(self.text)]

    def slice_of(self, span: Span) -> slice:
        """Return the part of `text` that is `span`, with the file's own line endings."""
        begin, end = (self._starts[line - 1] + column - 1 for line, column in (span[1:3], span[3:]))
        return slice(begin, end)

    def replaced(self, edits: Iterable[tuple[Span, str]], within: Span | None = None) -> str:
        """Return the text, or the part `within`, with other words at places that are apart."""
        part = slice(0, len(self.text)) if within is None else self.slice_of(within)
        parts, at = list[str](), part.start
        for span, words in sorted(edits):
            place = self.slice_of(span)
            parts += [self.text[at : place.start], words]
            at = place.stop
        return "".join([*parts, self.text[at : part.stop]])


Sources = Callable[[str], SourceFile | None]
"""Returns the file of a path in spans, or None if it cannot be shown."""
