"""Diagnostics for syntax errors.

If no token fits, the rules below are tried in order; each one examines the tokens around the
position and the tokens that would have fitted, and returns a located message or None. The order
matters: rules that are more certain come earlier.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from keyword import kwlist
from typing import Any

from nkic.base.diagnostics import CompileFailed, Fix, Guess, Label, did_you_mean, refusal
from nkic.base.source import Span
from nkic.source.actions import parser
from nkic.source.nodes import Node, Starred
from nkic.source.parser import (
    MAX_NESTING,
    Bracket,
    Token,
    Tokens,
    TooDeep,
    Unexpected,
    Words,
    words,
)

# ------------------------------------------------------------------------------------------------
# The state of the parser at a syntax error, with the queries that the diagnostics use.

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
        return words()

    @property
    def tokens(self) -> list[Token]:
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
        index = self.index
        while index and not self.is_layout(self.tokens[index - 1]):
            index -= 1
        return index

    @property
    def first(self) -> Token:
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
        w = self.words
        plain = token.kind in (w.name, w.number, w.string, w.fstring_end)
        return plain or (token.text in _ENDS_VALUE and self.is_fixed(token))

    def adjacent(self) -> bool:
        """Whether the token directly follows the previous one."""
        return self.previous[4:] == self.token[2:4]


Rule = Callable[[Situation], CompileFailed | None]
_CLAUSES = {
    "else": "`if`, `for`, `while` or `try`",
    "elif": "`if`",
    "except": "`try`",
    "finally": "`try`",
}
_BETWEEN_VALUES = frozenset(["and", "or", "in", "is", "if", "else", "for", "as", "from"])
_STATEMENT_WORDS = KEYWORDS - _BETWEEN_VALUES


def explain(error: Unexpected, lexed: Tokens, path: str) -> CompileFailed:
    """Return the exception for the position at which the parser could not continue."""
    at = Situation.of(error, lexed, path)
    if isinstance(error, TooDeep):
        return _too_deep(at)
    if lexed.failure and at.token.kind == at.words.error:
        return lexed.failure
    return next(failure for rule in RULES if (failure := rule(at)))


def _too_deep(at: Situation) -> CompileFailed:
    message = f"this text nests too deeply: more than {MAX_NESTING} parts are open at once"
    return refusal("too-many-levels", message, at.span, help="split it into several statements")


# ---- brackets ------------------------------------------------------------------------------


def _unclosed_bracket(at: Situation) -> CompileFailed | None:
    """The lexer found a bracket before this position that is never closed, which is the cause."""
    failure = at.lexed.failure
    if not failure or not failure.diagnostics[0].code.slug.endswith("bracket"):
        return None
    before = [bracket for bracket in at.lexed.open_brackets if bracket.token < at.index]
    if not before:
        return None
    opener = at.tokens[before[-1].token]
    return refusal(
        "unclosed-bracket",
        f"this `{opener.text}` is never closed",
        opener.span(at.path),
        label="opened here",
        labels=[Label(at.span, "this cannot be inside it")],
        help=f"add the missing `{before[-1].closer}`",
    )


# ---- blocks --------------------------------------------------------------------------------


def _unexpected_indent(at: Situation) -> CompileFailed | None:
    if at.token.kind != at.words.indent:
        return None
    first = at.tokens[at.index + 1]
    message = "this line is indented further than the one before it, which opens no block"
    return refusal(
        "unexpected-indent", message, first.span(at.path), help="indent it like the lines before it"
    )


def _missing_block(at: Situation) -> CompileFailed | None:
    if not at.wants_block:
        return None
    start = at.index - 1
    while start and not at.is_layout(at.tokens[start - 1]):
        start -= 1
    head = at.tokens[start]
    return refusal(
        "missing-block",
        f"the block of `{head.text}` in line {head.line} is missing",
        at.here,
        labels=[Label(head.span(at.path), "this line opens a block")],
        help="indent the lines that belong to it, or write `pass`",
    )


def _misplaced_clause(at: Situation) -> CompileFailed | None:
    word = at.token.text
    if at.previous.text == "else" and word == "if" and at.index == at.first_index + 1:
        span = at.previous.span(at.path).to(at.span)
        fix = Fix(span, "elif", "write `elif`", sure=True)
        message = "`else if` is written `elif`"
        return refusal("misplaced-clause", message, span, help="write `elif`", fixes=[fix])
    if at.at_start and word in _CLAUSES and at.is_keyword(at.token):
        return refusal(
            "misplaced-clause",
            f"this `{word}` does not continue any {_CLAUSES[word]}",
            at.span,
            help="indent it like the statement that it belongs to",
        )
    if at.previous.text == "except" and word == "*":
        message = "a `try` has either `except` or `except*` clauses, not both"
        return refusal("misplaced-clause", message, at.span, help="use one of the two")
    return None


def _try_without_clause(at: Situation) -> CompileFailed | None:
    if at.wants_name or not (at.accepts("except") and at.accepts("finally")):
        return None
    message = "the `try` before this line has no `except` and no `finally`"
    help = "add a clause that says what to do after an error"
    return refusal("misplaced-clause", message, at.here, help=help)


def _incomplete_head(at: Situation) -> CompileFailed | None:
    """Report a function without parameters, or a `match` block without cases."""
    if at.accepts("case") and not at.accepts("pass"):
        message = "the block of a `match` holds only `case` blocks"
        return refusal("bad-syntax", message, at.span, help="write `case pattern:` before it")
    if at.head == "def" and at.accepts("(") and not at.brackets and not at.wants_value:
        message = f"the parameters of `{at.previous.text}` are missing"
        return refusal("bad-syntax", message, at.gap, help="write `()` if it has none")
    return None


def _lone_decorator(at: Situation) -> CompileFailed | None:
    if not at.at_start or at.wants_name or not (at.accepts("def") and at.accepts("class")):
        return None
    message = "a decorator must be followed by a function or a class"
    return refusal("bad-syntax", message, at.here, help="write `def` or `class` in the next line")


def _block_in_line(at: Situation) -> CompileFailed | None:
    """Report a compound statement after `:` or `;` on the same line."""
    if at.brackets or at.at_start or at.previous.text not in (":", ";"):
        return None
    if at.token.text not in COMPOUND or not at.is_fixed(at.token):
        return None
    message = f"`{at.token.text}` must be the first word of a line"
    help = "start a new line, and indent it if it belongs to a block"
    return refusal("bad-syntax", message, at.span, help=help)


def _missing_colon(at: Situation) -> CompileFailed | None:
    if at.brackets or at.head not in HEADS:
        return None
    if at.first.kind == at.words.name:  # `match` or `case`, lexed as a name
        line = at.rest_of_line()
        end = at.index + len(line)
        if end >= len(at.tokens) or at.tokens[end].kind != at.words.indent:
            return None
        last = line[-1]
        return _colon_here(at, Span(at.path, last.line, last.column, last.line, last.column))
    has_colon = any(token.text == ":" for token in at.rest_of_line())
    if not at.accepts(":") or has_colon or at.token.text in ("=", ":="):
        return None
    return _colon_here(at, at.gap)


def _colon_here(at: Situation, span: Span) -> CompileFailed:
    message = f"the line of `{at.head}` must end with a colon"
    return refusal(
        "missing-colon", message, span, help="add `:`", fixes=[Fix(span, ":", "add `:`")]
    )


# ---- assignments and names -----------------------------------------------------------------


def _keyword_as_name(at: Situation) -> CompileFailed | None:
    word = at.token
    if (at.previous.text == "import" and word.text == "*") or not at.is_keyword(word):
        if word.text == "=" and at.is_keyword(at.previous) and _in_target_position(at):
            return _is_keyword(at, at.previous.text, at.previous.span(at.path))
        return None
    following = at.tokens[at.index + 1] if at.index + 1 < len(at.tokens) else word
    as_name = following.text in ("=", ".") and not at.brackets
    only_name = at.wants_name and not at.wants_value
    if only_name and word.text in ("import", "in") and at.head in ("from", "for"):
        return None
    if only_name or (at.wants_value and (word.text in _STATEMENT_WORDS or as_name)):
        return _is_keyword(at, word.text, at.span)
    return None


def _in_target_position(at: Situation) -> bool:
    """Whether the keyword before `=` is in the position of an assignment target."""
    return at.index - 1 == at.first_index or at.previous.text in ("None", "True", "False")


def _is_keyword(at: Situation, word: str, span: Span) -> CompileFailed:
    message = f"`{word}` is a keyword and cannot be a name here"
    return refusal(
        "keyword-as-name", message, span, help=f"choose another name, such as `{word.lower()}_`"
    )


def _assignment_in_expression(at: Situation) -> CompileFailed | None:
    if at.token.text == ":=" and not at.wants_name:
        return refusal(
            "assignment-in-expression",
            "`:=` needs parentheses here",
            at.span,
            help="write `=` for a statement of its own, or `(name := value)` within another one",
        )
    if at.token.text != "=" or at.wants_name or not at.is_fixed(at.token):
        return None
    message, help = "`=` cannot be used within an expression", "write `==` to compare"
    before = at.tokens[at.brackets[-1].token - 1] if at.brackets else at.first
    if at.opener and at.opener.text == "(" and at.ends_value(before) and before is not at.opener:
        message = "only a plain name can be used before `=` in a call"
        help = "write `name=value` to pass an argument, `==` to compare"
    return refusal("assignment-in-expression", message, at.span, help=help)


# ---- operators -----------------------------------------------------------------------------

_FOREIGN = {
    ("&", "&"): ("bad-syntax", "and"),
    ("|", "|"): ("bad-syntax", "or"),
    ("<", ">"): ("python-2-syntax", "!="),
    ("=", ">"): ("bad-syntax", ">="),
    ("=", "<"): ("bad-syntax", "<="),
}


def _foreign_operator(at: Situation) -> CompileFailed | None:
    pair = at.previous.text, at.token.text
    if not at.adjacent() or pair not in _FOREIGN:
        return None
    slug, ours = _FOREIGN[pair]
    span = at.previous.span(at.path).to(at.span)
    fix = Fix(span, f" {ours} " if ours.isalpha() else ours, f"write `{ours}`")
    message = f"`{''.join(pair)}` is not an operator"
    return refusal(slug, message, span, help=f"write `{ours}`", fixes=[fix])


def _bad_star(at: Situation) -> CompileFailed | None:
    if at.token.text in ("*", "**") and at.wants_value:
        use = "a call or a dict" if at.token.text == "**" else "a list, tuple, set or call"
        message = f"`{at.token.text}` cannot unpack anything here"
        return refusal("bad-star", message, at.span, help=f"unpack within {use}")
    value = at.values[-1]
    behind_star = len(at.values) > 2 and at.values[-2] == "*" and isinstance(value, Node)
    if not isinstance(value, Starred) and not (behind_star and not isinstance(at.values[-3], Node)):
        return None
    if at.starts_value(at.token):
        return None
    star = value.span if isinstance(value, Starred) else _before(value.span)
    return refusal(
        "bad-star",
        "a starred value cannot stand alone",
        star.to(value.span),
        help="unpack it into a list, `[*values]`, or a tuple, `(*values,)`",
    )


def _before(span: Span) -> Span:
    """Return the span extended to the left by one column, which is the star."""
    return span._replace(column=max(span.column - 1, 1))


# ---- something missing ---------------------------------------------------------------------


def _empty_field(at: Situation) -> CompileFailed | None:
    if not at.in_field:
        return None
    if at.wants_value and at.previous is at.opener:
        message = "this field of the f-string contains no expression"
        return refusal("bad-fstring", message, at.span, help="write `{{` for a brace in the text")
    if at.token.kind in (at.words.middle, at.words.raw_middle):
        message = "a lambda in an f-string needs parentheses, since `:` starts the format"
        return refusal("bad-fstring", message, at.span, help="write `{(lambda …: …)}`")
    if not at.wants_name:
        message = "a field of an f-string holds one expression; this does not belong to it"
        return refusal("bad-fstring", message, at.span, help="end the field with `}` before it")
    return None


def _missing_value(at: Situation) -> CompileFailed | None:
    if not at.wants_name or at.at_start or (at.wants_value and at.starts_value(at.token)):
        return None
    missing = "a value" if at.wants_value else "a name"
    help = f"write {missing}"
    if at.previous.text in ("+", "-") and at.tokens[at.index - 2].text == at.previous.text:
        help = f"to count, write `{at.previous.text}= 1`"
    elif at.previous.text == ",":
        help += ", or remove the comma"
    message = f"{missing} is missing after `{at.previous.text}`"
    return refusal("missing-value", message, at.here, help=help)


def _missing_word(at: Situation) -> CompileFailed | None:
    """Report the missing part of an unfinished `a if b`, `for x` or `{key`."""
    has_else = any(token.text == "else" for token in at.rest_of_line())
    if at.token.text not in ("=", ":") and at.accepts("else") and not has_else:
        message = "a conditional expression needs an `else`"
        return refusal(
            "missing-value", message, at.gap, help="write `value if condition else other`"
        )
    if at.accepts("in") and _reads_loop_variable(at):
        message = "`in` is missing after the loop variable"
        return refusal("missing-value", message, at.gap, help="write `for name in values`")
    if at.opener and at.opener.text == "{" and at.accepts(":") and not at.accepts(","):
        message = "the key of a dict needs a colon and a value after it"
        return refusal("missing-value", message, at.gap, help="write `key: value`")
    return None


def _reads_loop_variable(at: Situation) -> bool:
    start = at.brackets[-1].token if at.brackets else at.first_index
    words = [token.text for token in at.tokens[start : at.index]]
    return "for" in words and "in" not in words[len(words) - words[::-1].index("for") :]


def _missing_comma(at: Situation) -> CompileFailed | None:
    if not at.brackets or not at.starts_value(at.token) or not at.ends_value(at.previous):
        return None
    if not at.accepts(","):
        return None
    return refusal(
        "missing-comma",
        f"a comma or an operator is missing before `{at.token.text}`",
        at.gap,
        labels=[Label(at.span, "the next value")],
        help="separate values with a comma",
        fixes=[Fix(at.gap, ",", "add a comma")],
    )


# ---- side by side --------------------------------------------------------------------------


def _python_2(at: Situation) -> CompileFailed | None:
    first = at.first
    if first.text in ("print", "exec") and at.index == at.first_index + 1:
        if not at.starts_value(at.token):
            return None
        message = f"`{first.text}` is a function: its arguments need parentheses"
        span = first.span(at.path).to(at.span)
        return refusal("python-2-syntax", message, span, help=f"write `{first.text}(…)`")
    if at.token.text != "," or at.brackets:
        return None
    if first.text == "raise":
        message = "the arguments of an exception need parentheses"
        return refusal("python-2-syntax", message, at.span, help="write `raise Error(text)`")
    if first.text == "except":
        message = "several exceptions need parentheses, and a name for the exception needs `as`"
        help = "write `except (A, B):` or `except Error as name:`"
        return refusal("python-2-syntax", message, at.span, help=help)
    return None


def _misspelt(at: Situation) -> CompileFailed | None:
    """Report a probably misspelt keyword: a name at the start of a line before another value."""
    if at.index != at.first_index + 1 or at.previous.kind != at.words.name:
        return None
    suggestion = did_you_mean(at.previous.text, KEYWORDS)
    if (
        not isinstance(suggestion, Guess)
        or not suggestion.sure
        or not (at.starts_value(at.token) or at.is_keyword(at.token))
    ):
        return None
    return refusal(
        "bad-syntax",
        f"`{at.previous.text}` is not a keyword, and a name cannot be followed directly by a value",
        at.previous.span(at.path),
        help=suggestion,
    )


def _side_by_side(at: Situation) -> CompileFailed | None:
    if not at.ends_value(at.previous) or not at.starts_value(at.token) or at.at_start:
        return None
    return refusal(
        "bad-syntax",
        f"`{_brief(at.previous.text)}` and `{_brief(at.token.text)}` are next to each other "
        "without an operator",
        at.span,
        help="put an operator between them, or start a new line",
    )


def _brief(text: str) -> str:
    line = text.split("\n")[0]
    return line if len(line) <= 20 else line[:19] + "…"


def _anything_else(at: Situation) -> CompileFailed:
    if at.is_layout(at.token):
        end = "file" if at.token.kind == at.words.end else "line"
        message = f"the {end} ends within a statement"
        return refusal("bad-syntax", message, at.gap, help="write the rest of the statement")
    use = "start a statement" if at.at_start else "be used here"
    message = f"`{_brief(at.token.text)}` cannot {use}"
    return refusal(
        "bad-syntax", message, at.span, help="check this place and the text just before it"
    )


RULES: tuple[Rule, ...] = (
    _unclosed_bracket,
    _unexpected_indent,
    _missing_block,
    _misplaced_clause,
    _try_without_clause,
    _lone_decorator,
    _incomplete_head,
    _block_in_line,
    _python_2,
    _missing_colon,
    _foreign_operator,
    _keyword_as_name,
    _bad_star,
    _empty_field,
    _missing_word,
    _missing_comma,
    _assignment_in_expression,
    _missing_value,
    _misspelt,
    _side_by_side,
    _anything_else,
)
