"""The state of the parser at a syntax error, with the queries that the diagnostics use."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from keyword import kwlist
from typing import Any

from nkic.base.source import Span
from nkic.parse.actions import parser
from nkic.parse.parser import Unexpected
from nkic.parse.tokens import Bracket, Token, Tokens
from nkic.parse.words import Words, words

KEYWORDS = frozenset(kwlist)
COMPOUND = frozenset(["if", "while", "for", "with", "try", "def", "class", "match", "async"])
HEADS = COMPOUND | {"elif", "else", "except", "finally", "case"}
_CONSTANTS = frozenset({"None", "True", "False"})
_STARTS_VALUE = frozenset({"(", "[", "{", "lambda", "not", "await", "...", "~"}) | _CONSTANTS
_ENDS_VALUE = frozenset({")", "]", "}", "..."}) | _CONSTANTS


@dataclass(frozen=True)
class Situation:
    """The tokens of the file, and the parser's stack before token `index`."""

    lexed: Tokens
    path: str
    index: int
    states: list[int]
    values: list[Any]

    @classmethod
    def of(cls, error: Unexpected, lexed: Tokens, path: str) -> Situation:
        """Return the situation in which the parser raised `error`."""
        return cls(lexed, path, error.index, error.states, error.values)

    @property
    def words(self) -> Words:
        """The terminals by role."""
        return words()

    @property
    def tokens(self) -> list[Token]:
        """All tokens of the file."""
        return self.lexed.tokens

    @property
    def token(self) -> Token:
        """The token that does not fit."""
        return self.tokens[self.index]

    @property
    def previous(self) -> Token:
        """The token before it; at the start of the file, the token itself."""
        return self.tokens[max(self.index - 1, 0)]

    @property
    def span(self) -> Span:
        """The span of the token that does not fit."""
        return self.token.span(self.path)

    @property
    def gap(self) -> Span:
        """The empty span right after the previous token, where something is missing."""
        line, column = self.previous.end_line, self.previous.end_column
        return Span(self.path, line, column, line, column)

    @property
    def here(self) -> Span:
        """The span of the token that does not fit or, at the end of a line or block, the gap."""
        return self.gap if self.is_layout(self.token) else self.span

    # ---- the line --------------------------------------------------------------------------

    def is_layout(self, token: Token) -> bool:
        """Whether the token is the end of a line, of a block or of the file."""
        w = self.words
        return token.kind in (w.newline, w.indent, w.dedent, w.end)

    @cached_property
    def first_index(self) -> int:
        """The index of the line's first token."""
        index = self.index
        while index and not self.is_layout(self.tokens[index - 1]):
            index -= 1
        return index

    @property
    def first(self) -> Token:
        """The line's first token."""
        return self.tokens[self.first_index]

    @property
    def at_start(self) -> bool:
        """Whether the token that does not fit is the first of its line."""
        return self.index == self.first_index

    @cached_property
    def head(self) -> str:
        """The keyword at the start of the line, after `async`."""
        after_async = self.first.text == "async" and self.first_index + 1 < self.index
        return self.tokens[self.first_index + after_async].text

    @cached_property
    def brackets(self) -> list[Bracket]:
        """The brackets open before the token, innermost last."""
        open_brackets: list[Bracket] = []
        for index in range(self.first_index, self.index):
            text = self.tokens[index].text
            if self.is_opening(self.tokens[index]):
                open_brackets.append(Bracket({"(": ")", "[": "]", "{": "}"}[text], index))
            elif (
                open_brackets
                and text == open_brackets[-1].closer
                and self.is_closing(self.tokens[index])
            ):
                open_brackets.pop()
        return open_brackets

    def is_opening(self, token: Token) -> bool:
        """Whether the token opens a bracket, a field or the items of `with`."""
        w = self.words
        special = token.kind in (w.with_open, w.field_open)
        return special or (token.text in "([{" and self.is_fixed(token))

    def is_closing(self, token: Token) -> bool:
        """Whether the token closes a bracket or a field."""
        return token.text in ")]}" and self.is_fixed(token)

    def is_fixed(self, token: Token) -> bool:
        """Whether the token is the operator, bracket or keyword that its text spells."""
        return bool(token.text) and self.words.fixed.get(token.text) == token.kind

    @property
    def opener(self) -> Token | None:
        """The innermost open bracket."""
        return self.tokens[self.brackets[-1].token] if self.brackets else None

    @property
    def in_field(self) -> bool:
        """Whether the innermost bracket is a field of an f-string."""
        return self.opener is not None and self.opener.kind == self.words.field_open

    def rest_of_line(self) -> list[Token]:
        """Return the tokens from the one that does not fit to the end of the logical line."""
        end = self.index
        while end < len(self.tokens) - 1 and not self.is_layout(self.tokens[end]):
            end += 1
        return self.tokens[self.index : end + 1]

    # ---- acceptable tokens -----------------------------------------------------------------

    def accepts(self, text: str) -> bool:
        """Whether the operator, bracket or keyword `text` would fit here."""
        return parser().accepts(self.states, self.words.fixed[text])

    @cached_property
    def wants_name(self) -> bool:
        """Whether a name would fit, alone or at the start of a value."""
        return parser().accepts(self.states, self.words.name)

    @cached_property
    def wants_value(self) -> bool:
        """Whether any value would fit."""
        return parser().accepts(self.states, self.words.number)

    @cached_property
    def wants_block(self) -> bool:
        """Whether only an indented block would fit."""
        return parser().accepts(self.states, self.words.indent)

    # ---- kinds of tokens -------------------------------------------------------------------

    def is_keyword(self, token: Token) -> bool:
        """Whether the token is one of Python's reserved words."""
        return token.text in KEYWORDS and self.is_fixed(token)

    def starts_value(self, token: Token) -> bool:
        """Whether a value, and nothing else, can start with the token."""
        w = self.words
        plain = token.kind in (w.name, w.number, w.string, w.fstring_start)
        return plain or (token.text in _STARTS_VALUE and self.is_fixed(token))

    def ends_value(self, token: Token) -> bool:
        """Whether the token can be the last of a value."""
        w = self.words
        plain = token.kind in (w.name, w.number, w.string, w.fstring_end)
        return plain or (token.text in _ENDS_VALUE and self.is_fixed(token))

    def adjacent(self) -> bool:
        """Whether the token directly follows the previous one."""
        return self.previous[4:] == self.token[2:4]
