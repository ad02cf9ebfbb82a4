"""The lexer: text to tokens, by Python's rules for lines and indentation.

One compiled pattern, built from the grammar's terminals, matches one token at a time. This module
adds what patterns cannot express: blocks, brackets, f-strings (which the grammar splits into
parts), and the words whose meaning depends on the following tokens. A lexical error ends the token
list with an ERROR token, so that the parser can first report errors before it.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass

from nkic.base.diagnostics import CompileFailed
from nkic.base.source import SourceFile, Span
from nkic.parse import lexical_errors as errors
from nkic.parse.limits import MAX_BLOCKS, MAX_BRACKETS, MAX_FIELDS, MAX_NAME
from nkic.parse.lookahead import classify
from nkic.parse.tokens import Bracket, Token, Tokens
from nkic.parse.words import literal_pattern, words

CLOSERS = {"(": ")", "[": "]", "{": "}"}
_BLANK_LINES = re.compile(r"(?:[ \t\f]*(?:#[^\n]*)?\n)*")
_MARGIN = re.compile(r"[ \t\f]*")
_TAB = 8  # columns, as in Python


def lex(source: SourceFile) -> Tokens:
    """Return the tokens of a file."""
    lexer = _Lexer(source)
    try:
        lexer.run()
    except CompileFailed as failure:
        return lexer.tokens_with_error(failure)
    return Tokens(lexer.tokens, None, ())


@dataclass(slots=True)
class _OpenString:
    """An open f-string; `fields` counts its open fields, where inner ones are in formats."""

    start: Token
    quote: str
    raw: bool
    fields: int = 0


@dataclass(slots=True)
class _Block:
    """An indentation: its width with tabs to multiples of 8, and with tabs as one column."""

    width: int
    narrow: int
    of_match: bool = False

    def agrees(self, width: int, narrow: int) -> bool:
        """Whether a margin compares with this one the same way for any width of a tab."""
        if width == self.width:
            return narrow == self.narrow
        return width < self.width or narrow > self.narrow


class _Lexer:
    def __init__(self, source: SourceFile) -> None:
        self.path = source.path
        self.text = "\n".join(source.lines)
        if not self.text.endswith("\n"):
            self.text += "\n"
        self.ascii = self.text.isascii()
        self.words = words()
        self.tokens: list[Token] = []
        self.line, self.base = 1, 0  # the current line, and the offset of its start
        self.first = 0  # the index of the logical line's first token
        self.brackets: list[Bracket] = []
        self.strings: list[_OpenString] = []
        self.comments: list[tuple[int, int]] = []  # those within f-string fields
        self.blocks = [_Block(0, 0)]
        self.marked: list[int] = []  # tokens of this line for `classify`
        self.opens_match = False

    # ---- the loop --------------------------------------------------------------------------

    def run(self) -> None:
        words, text, match = self.words, self.text, self.words.pattern.match
        fixed, keywords, name = words.fixed, words.keywords, words.name
        new, add = tuple.__new__, self.tokens.append
        group = words.pattern.groupindex
        word, operator, first_lookahead = group["word"], group["operator"], words.first_lookahead
        handlers = {index: getattr(self, f"_{key}", self._bad) for key, index in group.items()}
        position, length = self._start_line(0), len(text)
        while position < length:
            matched = match(text, position)
            number: int = matched.lastindex  # type: ignore[union-attr, assignment]  # one matches
            start, position = matched.span(number)  # type: ignore[union-attr]
            if number == word:
                token_text = text[start:position]
                kind = keywords.get(token_text, name)
                if kind >= first_lookahead:
                    self.marked.append(len(self.tokens))
                if not self.ascii:
                    self._check_name(start, position)
            elif number == operator:
                token_text = text[start:position]
                kind = fixed[token_text]
            else:
                position = handlers[number](start, position)
                continue
            line, base = self.line, self.base - 1
            add(new(Token, (kind, token_text, line, start - base, line, position - base)))
        self._finish()

    def _add(self, kind: int, start: int, end: int, text: str = "") -> Token:
        """Append a token that starts on the current line; it may end on a later one."""
        line, column = self.line, start - self.base + 1
        self._count_lines(start, end)
        text = text or self.text[start:end]
        token = Token(kind, text, line, column, self.line, end - self.base + 1)
        self.tokens.append(token)
        return token

    def _count_lines(self, start: int, end: int) -> None:
        if newlines := self.text.count("\n", start, end):
            self.line += newlines
            self.base = self.text.rindex("\n", start, end) + 1

    def _span(self, start: int, end: int) -> Span:
        base = self.base - 1
        return Span(self.path, self.line, start - base, self.line, end - base)

    def _finish(self) -> None:
        if self.brackets:
            raise errors.never_closed(self.brackets[-1], self.tokens, self.path)
        end = len(self.text)
        self.tokens.append(
            Token(self.words.end, "", self.line, end - self.base + 1, *self._last_end())
        )

    def tokens_with_error(self, failure: CompileFailed) -> Tokens:
        """Return the tokens up to the failure, terminated by an ERROR token."""
        self._classify_marked()
        primary = failure.diagnostics[0].primary
        position = primary.span[1:] if primary else (self.line, 1, self.line, 1)
        self.tokens.append(Token(self.words.error, "", *position))
        return Tokens(self.tokens, failure, tuple(self.brackets))

    # ---- lines and blocks ------------------------------------------------------------------

    def _newline(self, start: int, end: int) -> int:
        column = start - self.base + 1
        line, self.line, self.base = self.line, self.line + 1, end
        if self.brackets:
            if self.strings and self.text[start] == "#":
                self.comments.append((start, end - 1))
            return end
        if len(self.tokens) > self.first:  # not after a continuation followed by an empty line
            self._classify_marked()
            self.tokens.append(Token(self.words.newline, "", line, column, *self._last_end()))
        return self._start_line(end)

    def _classify_marked(self) -> None:
        if self.marked:
            in_match = self.blocks[-1].of_match
            marked, self.marked = self.marked, []
            self.opens_match = classify(self.tokens, marked, self.first, in_match, self.words)

    def _last_end(self) -> tuple[int, int]:
        return self.tokens[-1][4:] if self.tokens else (1, 1)

    def _start_line(self, position: int) -> int:
        """Skip blank lines and comments; compare the next line's margin with the open blocks."""
        end = _BLANK_LINES.match(self.text, position).end()  # type: ignore[union-attr]
        self._count_lines(position, end)
        margin_end = _MARGIN.match(self.text, end).end()  # type: ignore[union-attr]
        width, narrow = _widths(self.text[end:margin_end])
        if not self.blocks[-1].agrees(width, narrow):
            raise errors.inconsistent_tabs(self._span(end, margin_end))
        if width > self.blocks[-1].width:
            self._indent(width, narrow, end, margin_end)
        while width < self.blocks[-1].width:
            self._dedent(width, narrow, end, margin_end)
        self.opens_match = False
        self.first = len(self.tokens)
        return margin_end

    def _indent(self, width: int, narrow: int, start: int, end: int) -> None:
        if len(self.blocks) == MAX_BLOCKS:
            raise errors.too_many_blocks(self._span(start, end))
        self.blocks.append(_Block(width, narrow, self.opens_match))
        span = self._span(start, end)
        self.tokens.append(
            Token(self.words.indent, "", span.line, span.end_column, *self._last_end())
        )

    def _dedent(self, width: int, narrow: int, start: int, end: int) -> None:
        inner, outer = self.blocks.pop(), self.blocks[-1]
        if width > outer.width:
            span = self._span(start, end)
            raise errors.dedent_between(span, width, inner.width, outer.width)
        if width == outer.width and narrow != outer.narrow:
            raise errors.inconsistent_tabs(self._span(start, end))
        span = self._span(start, end)
        self.tokens.append(
            Token(self.words.dedent, "", span.line, span.end_column, *self._last_end())
        )

    def _continuation(self, start: int, end: int) -> int:
        self._count_lines(start, end)
        if end == len(self.text):
            raise errors.continuation_at_end(Span(self.path, *self._last_end() * 2))
        return end

    # ---- words, numbers, brackets ----------------------------------------------------------

    def _check_name(self, start: int, end: int) -> None:
        text = self.text[start:end]
        if text.isascii():
            return
        if len(text) > MAX_NAME:
            raise errors.name_too_long(text, self._span(start, end))
        if not text.isidentifier():
            raise errors.bad_name(text, self._span(start, end))

    def _other_word(self, start: int, end: int) -> int:
        text = self.text[start:end]
        self._check_name(start, end)
        kind = self.words.keywords.get(text, self.words.name)
        if kind >= self.words.first_lookahead:
            self.marked.append(len(self.tokens))
        self._add(kind, start, end)
        return end

    def _number(self, start: int, end: int) -> int:
        following = self.text[end]
        if following.isalnum() or following == "_" or not following.isascii():
            errors.check_number(self.text, start, end, self._span(start, end))
        self._add(self.words.number, start, end)
        return end

    def _string(self, start: int, end: int) -> int:
        self._add(self.words.string, start, end)
        return end

    def _opening(self, start: int, end: int) -> int:
        opener = self.text[start]
        self._push(Bracket(CLOSERS[opener], len(self.tokens)), start)
        self._add(self.words.fixed[opener], start, end)
        return end

    def _push(self, bracket: Bracket, position: int) -> None:
        if len(self.brackets) == MAX_BRACKETS:
            raise errors.too_many_brackets(self._span(position, position + 1))
        self.brackets.append(bracket)

    def _closing(self, start: int, end: int) -> int:
        closer = self.text[start]
        if not self.brackets:
            raise errors.nothing_to_close(closer, self._span(start, end))
        bracket = self.brackets[-1]
        if bracket.closer != closer:
            span = self._span(start, end)
            raise errors.mismatch(closer, span, self.tokens[bracket.token], bracket)
        if bracket.field_start >= 0:
            return self._close_field(start)
        self.brackets.pop()
        self._add(self.words.fixed[closer], start, end)
        return end

    def _colon(self, start: int, end: int) -> int:
        """Lex `:`, `:=` and `!`, which have another meaning at the outermost level of a field."""
        text = self.text[start:end]
        in_field = bool(self.brackets) and self.brackets[-1].field_start >= 0
        if in_field:
            end = start + 1
            self._keep_debug_text(start)
        elif text == "!":
            raise errors.bad_character(self.text, start, self._span(start, end))
        self._add(self.words.fixed[self.text[start:end]], start, end)
        return self._literal(end) if in_field and text != "!" else end

    def _bad(self, start: int, end: int) -> int:
        if self.text[start] not in "\"'":
            raise errors.bad_character(self.text, start, self._span(start, end))
        in_field = self.brackets and self.brackets[-1].field_start >= 0
        if in_field and self.text.startswith(self.strings[-1].quote, start):
            field = self.tokens[self.brackets[-1].token]
            raise errors.field_never_closed(field, self.path)
        raise errors.unterminated_string(self.text, start, self._span(start, end))

    # ---- f-strings -------------------------------------------------------------------------

    def _fstring(self, start: int, end: int) -> int:
        text = self.text[start:end]
        token = self._add(self.words.fstring_start, start, end)
        quote = text.lstrip("fFrR")
        self.strings.append(_OpenString(token, quote, "r" in text.lower()))
        return self._literal(end)

    def _literal(self, position: int) -> int:
        """Read literal text of the string or of a field's format, up to its terminator."""
        string = self.strings[-1]
        pattern = literal_pattern(string.quote, string.raw)
        while True:
            end = pattern.match(self.text, position).end()  # type: ignore[union-attr]
            brace = self.text[end : end + 1]
            if brace in ("{", "}") and not string.fields and self.text[end + 1] == brace:
                position = self._middle(position, end + 2, self.text[position : end + 1])
                continue
            self._middle(position, end, self.text[position:end])
            if brace == "{":
                return self._open_field(end, string)
            if brace == "}" and string.fields:
                return self._close_field(end)
            return self._end_string(end, string)

    def _middle(self, start: int, end: int, text: str) -> int:
        if text:
            raw = self.strings[-1].raw
            self._add(self.words.raw_middle if raw else self.words.middle, start, end, text)
        return end

    def _open_field(self, brace: int, string: _OpenString) -> int:
        if string.fields == MAX_FIELDS:
            raise errors.fields_too_deep(self._span(brace, brace + 1))
        self._push(Bracket("}", len(self.tokens), field_start=brace + 1), brace)
        self._add(self.words.field_open, brace, brace + 1)
        string.fields += 1
        return brace + 1

    def _close_field(self, brace: int) -> int:
        self._keep_debug_text(brace)
        self.brackets.pop()
        self._add(self.words.fixed["}"], brace, brace + 1)
        self.strings[-1].fields -= 1
        return self._literal(brace + 1)

    def _keep_debug_text(self, end: int) -> None:
        """Set the text of the `=` in `{x = }` to the field's text so far, without comments."""
        last = self.tokens[-1]
        if last.kind != self.words.fixed["="]:
            return
        start = self.brackets[-1].field_start
        pieces = []
        for first, past in self.comments[bisect_left(self.comments, (start, 0)) :]:
            pieces.append(self.text[start:first])
            start = past
        self.tokens[-1] = last._replace(text="".join([*pieces, self.text[start:end]]))

    def _end_string(self, position: int, string: _OpenString) -> int:
        end = position + len(string.quote)
        if not self.text.startswith(string.quote, position):
            if self.text.startswith("}", position):
                raise errors.single_brace(self._span(position, position + 1))
            raise errors.unterminated_fstring(string.start, string.quote, self.path)
        if string.fields:
            raise errors.field_never_closed(self.tokens[self.brackets[-1].token], self.path)
        self._add(self.words.fstring_end, position, end)
        self.strings.pop()
        return end


def _widths(margin: str) -> tuple[int, int]:
    """Return the margin's width with tabs to multiples of 8, and with tabs as one column."""
    if not margin.strip(" "):
        return len(margin), len(margin)
    width = narrow = 0
    for character in margin:
        width = (
            0
            if character == "\f"
            else (width // _TAB + 1) * _TAB
            if character == "\t"
            else width + 1
        )
        narrow = 0 if character == "\f" else narrow + 1
    return width, narrow
