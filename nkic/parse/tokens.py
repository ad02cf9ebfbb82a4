"""The interface between lexer and parser."""

from __future__ import annotations

from typing import NamedTuple

from nkic.base.diagnostics import CompileFailed
from nkic.base.source import Span


class Token(NamedTuple):
    """A token of the source. `kind` is the terminal's number in the tables.

    Lines and columns count from 1. The tokens for line ends and indentation end where the last real
    token ended, so that a block's last token ends where its text does.
    """

    kind: int
    text: str
    line: int
    column: int
    end_line: int
    end_column: int

    def span(self, path: str) -> Span:
        """Return the token's span in the file at `path`."""
        return Span(path, *self[2:])


class Bracket(NamedTuple):
    """An open bracket: the text that closes it and its index among the tokens.

    `field_start` is the offset of an f-string field's text, or -1 for ordinary brackets.
    """

    closer: str
    token: int
    field_start: int = -1


class Tokens(NamedTuple):
    """All tokens of a file, terminated by the end token or, if the lexer failed, an ERROR token."""

    tokens: list[Token]
    failure: CompileFailed | None
    open_brackets: tuple[Bracket, ...]
