"""The lexer: text to tokens, by Python's rules for lines and indentation.

One compiled pattern, built from the grammar's terminals, matches one token at a time. This module
adds what patterns cannot express: blocks, brackets, f-strings (which the grammar splits into
parts), and the words whose meaning depends on the following tokens. A lexical error ends the token
list with an ERROR token, so that the parser can first report errors before it.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from dataclasses import dataclass

from nkic.base.diagnostics import CompileFailed, Fix, Label, refusal
from nkic.base.source import SourceFile, Span
from nkic.source.parser import (
    MAX_BLOCKS,
    MAX_BRACKETS,
    MAX_FIELDS,
    MAX_NAME,
    Bracket,
    Token,
    Tokens,
    Words,
    literal_pattern,
    words,
)

# ---- Diagnostics of the lexer. Each function returns one exception ------------------------------

# ---- characters ----------------------------------------------------------------------------

_LOOK_ALIKES = {
    **dict.fromkeys("“”„‟″", '"'),
    **dict.fromkeys("‘’‚‛′´", "'"),
    **dict.fromkeys("–—−‐‑", "-"),
    "×": "*",
    "÷": "/",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
    "，": ",",
    "：": ":",
    "（": "(",
    "）": ")",
    "；": ";",
}
_ADVICE = {
    "!": "write `not` to negate, `!=` to compare",
    "?": "write a choice as `value if condition else other`",
    "`": "write repr(…) for the text of a value",
    "$": "a name consists of letters, digits and underscores",
}


def bad_character(text: str, position: int, span: Span) -> CompileFailed:
    """A character that starts no token."""
    character = text[position]
    if character == "\\":
        return bad_continuation(span)
    if ord(character) < 128 and character.isprintable():
        shown = "a backtick" if character == "`" else f"`{character}`"
        message = f"{shown} has no meaning here"
        return refusal("bad-character", message, span, help=_ADVICE.get(character, "remove it"))
    return _unsupported_character(character, span)


def bad_name(text: str, span: Span) -> CompileFailed:
    """A word with a non-ASCII character that cannot be part of a name, or start one."""
    cannot = (i for i in range(len(text)) if not ("a" + text[: i + 1]).isidentifier())
    index = next(cannot, 0)
    column = span.column + index
    return _unsupported_character(text[index], span._replace(column=column, end_column=column + 1))


def name_too_long(text: str, span: Span) -> CompileFailed:
    return refusal(
        "too-large",
        f"this name has {len(text)} characters; a name that is not ASCII has at most {MAX_NAME}",
        span,
        help="choose a shorter name",
    )


def _unsupported_character(character: str, span: Span) -> CompileFailed:
    name = unicodedata.name(character, "").lower()
    shown = f"`{character}` " if character.isprintable() and not character.isspace() else ""
    message = (
        f"the character {shown}U+{ord(character):04X}{name and f' ({name})'} is not allowed here"
    )
    plain = " " if character.isspace() else _LOOK_ALIKES.get(character, "")
    if not plain:
        return refusal("bad-character", message, span, help="remove it, or put it into a string")
    replacement = "an ordinary space" if plain == " " else f"`{plain}`"
    fix = Fix(span, plain, f"replace it by {replacement}")
    return refusal("bad-character", message, span, help=f"write {replacement} instead", fixes=[fix])


def bad_continuation(span: Span) -> CompileFailed:
    message = "a backslash continues a line only if it is the last character"
    return refusal(
        "bad-continuation", message, span, help="remove the backslash, or the text that follows it"
    )


def continuation_at_end(span: Span) -> CompileFailed:
    message = "the file ends after a backslash that continues the line"
    help = "remove the backslash, or write the rest of the line"
    return refusal("bad-continuation", message, span, help=help)


# ---- numbers -------------------------------------------------------------------------------

_AFTER_NUMBER = re.compile(r"and|else|for|if|in|is|or|not")
_REST_OF_NUMBER = re.compile(r"[\w.]*")
_BASES = {"x": "hexadecimal", "o": "octal", "b": "binary"}


def check_number(text: str, start: int, end: int, span: Span) -> None:
    """Refuse a number followed directly by letters or digits, except `1if x else y`."""
    if _AFTER_NUMBER.match(text, end):
        return
    whole = text[start:end] + _REST_OF_NUMBER.match(text, end).group()  # type: ignore[union-attr]
    raise _bad_number(whole, span._replace(end_column=span.column + len(whole)))


def _bad_number(whole: str, span: Span) -> CompileFailed:
    fixes = []
    if re.fullmatch(r"0[0-9_]+", whole):
        digits = whole.replace("_", "").lstrip("0")
        message = f"`{whole}` starts with a zero, which is neither decimal nor octal"
        help = f"write {digits} for the decimal number or 0o{digits} for the octal one"
    elif re.fullmatch(r"[0-9_]+[lL]", whole):
        message = f"`{whole}`: integers have no suffix; they can be of any size"
        help = f"write {whole[:-1]}"
        fixes = [Fix(span, whole[:-1], "remove the letter", sure=True)]
    elif "__" in whole or whole.endswith("_"):
        message = f"`{whole}`: an underscore must be between two digits"
        help = f"write {re.sub('_+', '_', whole).strip('_')}"
    else:
        base = _BASES.get(whole[1:2].lower()) if whole[0] == "0" else None
        message = f"`{whole}` is not {f'a {base} number' if base else 'a number'}"
        help = "a name cannot start with a digit; put a space or an operator after a number"
    return refusal("bad-number", message, span, help=help, fixes=fixes)


# ---- strings -------------------------------------------------------------------------------


def unterminated_string(text: str, start: int, span: Span) -> CompileFailed:
    """A quote without a matching one; `span` is the quote."""
    quote = text[start]
    if text.startswith(quote * 3, start):
        return _unterminated(quote * 3, span._replace(end_column=span.column + 3))
    length = text.index("\n", start) - start
    return _unterminated(quote, span._replace(end_column=span.column + length))


def _unterminated(quote: str, span: Span) -> CompileFailed:
    until = "the end of the file" if len(quote) == 3 else "the end of the line"
    advice = f"close it with {quote}"
    if len(quote) == 1:
        advice += f", or use {quote * 3} for a string over several lines"
    message = f"this string is not closed before {until}"
    return refusal("unterminated-string", message, span, label="starts here", help=advice)


def field_never_closed(brace: Token, path: str) -> CompileFailed:
    """An f-string that ends within a field; `brace` opens the field."""
    return refusal(
        "bad-fstring",
        "this field of the f-string is not closed before the string ends",
        brace.span(path),
        label="opened here",
        help="close the field with `}`, or write `{{` for a brace in the text",
    )


def single_brace(span: Span) -> CompileFailed:
    return refusal(
        "bad-fstring",
        "this `}` closes no field of the f-string",
        span,
        help="write `}}` for a brace in the text",
        fixes=[Fix(span, "}}", "double the brace")],
    )


def fields_too_deep(span: Span) -> CompileFailed:
    message = f"fields inside the formats of an f-string are nested more than {MAX_FIELDS} deep"
    help = "compute the inner text first and assign it to a variable"
    return refusal("too-many-levels", message, span, help=help)


# ---- brackets ------------------------------------------------------------------------------

_OPENERS = {")": "(", "]": "[", "}": "{"}


def never_closed(bracket: Bracket, tokens: list[Token], path: str) -> CompileFailed:
    opener = tokens[bracket.token]
    last = tokens[-1]
    end = Span(path, last.end_line, last.end_column, last.end_line, last.end_column)
    return refusal(
        "unclosed-bracket",
        f"this `{opener.text}` is never closed",
        opener.span(path),
        label="opened here",
        labels=[Label(end, "the file ends here")],
        help=f"add the missing `{bracket.closer}`",
    )


def nothing_to_close(closer: str, span: Span) -> CompileFailed:
    message = f"this `{closer}` closes nothing"
    help = f"remove it, or add the `{_OPENERS[closer]}` that it should close"
    return refusal("unmatched-bracket", message, span, help=help)


def mismatch(closer: str, span: Span, opener: Token, bracket: Bracket) -> CompileFailed:
    """A closing bracket of another kind than the open one."""
    return refusal(
        "unmatched-bracket",
        f"`{closer}` cannot close the `{opener.text}` of line {opener.line}",
        span,
        labels=[Label(opener.span(span.path), "opened here")],
        help=f"close it with `{bracket.closer}`",
    )


def too_many_brackets(span: Span) -> CompileFailed:
    message = f"brackets are nested more than {MAX_BRACKETS} deep"
    help = "compute the inner parts first and assign them to variables"
    return refusal("too-many-levels", message, span, help=help)


# ---- indentation ---------------------------------------------------------------------------


def inconsistent_tabs(span: Span) -> CompileFailed:
    """A margin whose depth depends on the width of a tab."""
    message = "this line's indentation mixes tabs and spaces differently from the lines before it"
    return refusal("mixed-tabs", message, span, help="indent with spaces only")


def too_many_blocks(span: Span) -> CompileFailed:
    message = f"blocks are nested more than {MAX_BLOCKS} deep"
    return refusal("too-many-levels", message, span, help="move the inner blocks into a function")


def dedent_between(span: Span, width: int, inner: int, outer: int) -> CompileFailed:
    message = f"this line is indented by {width}, which does not match any enclosing block"
    help = f"indent it by {inner} to go on with the block before it, or by {outer} to end it"
    return refusal("bad-dedent", message, span, help=help)


# ---- Words whose meaning depends on the rest of the line ----------------------------------------
# The lexer marks every `with`, `match`, `case` and `type`, and classifies them at the line's end.

_OPEN, _CLOSE = frozenset("([{"), frozenset(")]}")
# These tokens make the parenthesis after `with` an expression.
_EXPRESSION_ONLY = frozenset({"for", ":=", "yield"})


def classify(
    tokens: list[Token], marked: list[int], first: int, in_match: bool, words: Words
) -> bool:
    """Set the kinds of the marked tokens in the line that starts at `first`.

    `in_match` tells whether the line is directly in a match statement's block. Return whether the
    line opens such a block.
    """
    for index in marked:
        if tokens[index].kind == words.with_:
            if index == first or tokens[index - 1].text == "async":  # elsewhere it is an error
                _classify_with(tokens, index, words)
        elif not _is_keyword(tokens, index, first, in_match, words):
            tokens[index] = tokens[index]._replace(kind=words.name)
    return tokens[first].kind == words.match


def _is_keyword(tokens: list[Token], index: int, first: int, in_match: bool, words: Words) -> bool:
    kind = tokens[index].kind
    if kind == words.match:
        # No other line starts with `match` and ends with a colon.
        return index == first and tokens[-1].kind == words.fixed[":"] and len(tokens) > index + 2
    if kind == words.case:
        return index == first and in_match
    if index + 1 == len(tokens) or not (index == first or tokens[index - 1].text in ";:"):
        return False
    return tokens[index + 1].kind in (words.name, words.match, words.case, words.type)


def _classify_with(tokens: list[Token], index: int, words: Words) -> None:
    if index + 1 == len(tokens) or tokens[index + 1].text != "(":
        return
    if _holds_items(tokens, index + 1):
        tokens[index + 1] = tokens[index + 1]._replace(kind=words.with_open)


def _holds_items(tokens: list[Token], opening: int) -> bool:
    """Whether `( … )` at `opening` is followed by `:` and may be a list of items."""
    depth, expression_only = 0, False
    for index in range(opening, len(tokens) - 1):
        token = tokens[index]
        depth += (token.text in _OPEN) - (token.text in _CLOSE)
        if depth == 0:
            is_empty = index == opening + 1
            return tokens[index + 1].text == ":" and not expression_only and not is_empty
        if depth > 1:
            continue
        if token.text == "as":
            return _closed_before_colon(tokens, index)
        starts_item = tokens[index - 1].text in ("(", ",")
        expression_only |= token.text in _EXPRESSION_ONLY or (starts_item and token.text == "*")
    return False


def _closed_before_colon(tokens: list[Token], inside: int) -> bool:
    depth = 1
    for index in range(inside, len(tokens) - 1):
        depth += (tokens[index].text in _OPEN) - (tokens[index].text in _CLOSE)
        if depth == 0:
            return tokens[index + 1].text == ":"
    return False


CLOSERS = {"(": ")", "[": "]", "{": "}"}
_BLANK_LINES = re.compile(r"(?:[ \t\f]*(?:#[^\n]*)?\n)*")
_MARGIN = re.compile(r"[ \t\f]*")
_TAB = 8  # columns, as in Python


def lex(source: SourceFile) -> Tokens:
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
        if self.brackets:
            raise never_closed(self.brackets[-1], self.tokens, self.path)
        end = len(self.text)
        self.tokens.append(
            Token(self.words.end, "", self.line, end - self.base + 1, *self._last_end())
        )

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
            raise inconsistent_tabs(self._span(end, margin_end))
        if width > self.blocks[-1].width:
            if len(self.blocks) == MAX_BLOCKS:
                raise too_many_blocks(self._span(end, margin_end))
            self.blocks.append(_Block(width, narrow, self.opens_match))
            span = self._span(end, margin_end)
            self.tokens.append(
                Token(self.words.indent, "", span.line, span.end_column, *self._last_end())
            )
        while width < self.blocks[-1].width:
            self._dedent(width, narrow, end, margin_end)
        self.opens_match = False
        self.first = len(self.tokens)
        return margin_end

    def _dedent(self, width: int, narrow: int, start: int, end: int) -> None:
        inner, outer = self.blocks.pop(), self.blocks[-1]
        if width > outer.width:
            span = self._span(start, end)
            raise dedent_between(span, width, inner.width, outer.width)
        if width == outer.width and narrow != outer.narrow:
            raise inconsistent_tabs(self._span(start, end))
        span = self._span(start, end)
        self.tokens.append(
            Token(self.words.dedent, "", span.line, span.end_column, *self._last_end())
        )

    def _continuation(self, start: int, end: int) -> int:
        self._count_lines(start, end)
        if end == len(self.text):
            raise continuation_at_end(Span(self.path, *self._last_end() * 2))
        return end

    # ---- words, numbers, brackets ----------------------------------------------------------

    def _check_name(self, start: int, end: int) -> None:
        text = self.text[start:end]
        if text.isascii():
            return
        if len(text) > MAX_NAME:
            raise name_too_long(text, self._span(start, end))
        if not text.isidentifier():
            raise bad_name(text, self._span(start, end))

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
            check_number(self.text, start, end, self._span(start, end))
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
            raise too_many_brackets(self._span(position, position + 1))
        self.brackets.append(bracket)

    def _closing(self, start: int, end: int) -> int:
        closer = self.text[start]
        if not self.brackets:
            raise nothing_to_close(closer, self._span(start, end))
        bracket = self.brackets[-1]
        if bracket.closer != closer:
            span = self._span(start, end)
            raise mismatch(closer, span, self.tokens[bracket.token], bracket)
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
            raise bad_character(self.text, start, self._span(start, end))
        self._add(self.words.fixed[self.text[start:end]], start, end)
        return self._literal(end) if in_field and text != "!" else end

    def _bad(self, start: int, end: int) -> int:
        if self.text[start] not in "\"'":
            raise bad_character(self.text, start, self._span(start, end))
        in_field = self.brackets and self.brackets[-1].field_start >= 0
        if in_field and self.text.startswith(self.strings[-1].quote, start):
            field = self.tokens[self.brackets[-1].token]
            raise field_never_closed(field, self.path)
        raise unterminated_string(self.text, start, self._span(start, end))

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
                if string.fields == MAX_FIELDS:
                    raise fields_too_deep(self._span(end, end + 1))
                self._push(Bracket("}", len(self.tokens), field_start=end + 1), end)
                self._add(self.words.field_open, end, end + 1)
                string.fields += 1
                return end + 1
            if brace == "}" and string.fields:
                return self._close_field(end)
            return self._end_string(end, string)

    def _middle(self, start: int, end: int, text: str) -> int:
        if text:
            raw = self.strings[-1].raw
            self._add(self.words.raw_middle if raw else self.words.middle, start, end, text)
        return end

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
                raise single_brace(self._span(position, position + 1))
            raise _unterminated(string.quote, string.start.span(self.path))
        if string.fields:
            raise field_never_closed(self.tokens[self.brackets[-1].token], self.path)
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
