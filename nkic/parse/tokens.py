"""What the lexer hands to the parser."""

from __future__ import annotations

from typing import NamedTuple

from nkic.base.diagnostics import CompileFailed
from nkic.base.source import Span


class Token(NamedTuple):
    """One word of the source. `kind` is the terminal's number in the tables.

    Lines and columns count from 1. The tokens for the end of a line and for indentation end
    where the last real token ended, so that a block's last token ends where its text does.
    """

    kind: int
    text: str
    line: int
    column: int
    end_line: int
    end_column: int

    def span(self, path: str) -> Span:
        """Where it stands in the file at `path`."""
        return Span(path, *self[2:])


class Bracket(NamedTuple):
    """An open bracket: the text that closes it and its place among the tokens.

    `field_start` is the offset of an f-string field's text, -1 for ordinary brackets.
    """

    closer: str
    token: int
    field_start: int = -1


class Tokens(NamedTuple):
    """All tokens of a file, closed by the end or, if the lexer failed, by an ERROR token."""

    tokens: list[Token]
    failure: CompileFailed | None
    open_brackets: tuple[Bracket, ...]
