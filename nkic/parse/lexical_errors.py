"""Diagnostics of the lexer. Each function returns one exception."""

from __future__ import annotations

import re
import unicodedata

from nkic.base.diagnostics import CompileFailed, Fix, Label, refusal
from nkic.base.source import Span
from nkic.parse.limits import MAX_BLOCKS, MAX_BRACKETS, MAX_FIELDS, MAX_NAME
from nkic.parse.tokens import Bracket, Token

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
    """A non-ASCII name that is too long to normalise."""
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
    """A backslash that is not the last character of its line."""
    return refusal(
        "bad-continuation",
        "a backslash continues a line only if it is the last character",
        span,
        help="remove the backslash, or the text that follows it",
    )


def continuation_at_end(span: Span) -> CompileFailed:
    """A backslash at the end of the file."""
    return refusal(
        "bad-continuation",
        "the file ends after a backslash that continues the line",
        span,
        help="remove the backslash, or write the rest of the line",
    )


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


def unterminated_fstring(start: Token, quote: str, path: str) -> CompileFailed:
    """An f-string without an end; `start` is its prefix and quote."""
    return _unterminated(quote, start.span(path))


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
    """A `}` in the text of an f-string."""
    return refusal(
        "bad-fstring",
        "this `}` closes no field of the f-string",
        span,
        help="write `}}` for a brace in the text",
        fixes=[Fix(span, "}}", "double the brace")],
    )


def fields_too_deep(span: Span) -> CompileFailed:
    """A format nested too deeply in formats."""
    return refusal(
        "too-many-levels",
        f"fields inside the formats of an f-string are nested more than {MAX_FIELDS} deep",
        span,
        help="compute the inner text first and assign it to a variable",
    )


# ---- brackets ------------------------------------------------------------------------------

_OPENERS = {")": "(", "]": "[", "}": "{"}


def never_closed(bracket: Bracket, tokens: list[Token], path: str) -> CompileFailed:
    """The file ends within a bracket."""
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
    """A closing bracket without an open one."""
    return refusal(
        "unmatched-bracket",
        f"this `{closer}` closes nothing",
        span,
        help=f"remove it, or add the `{_OPENERS[closer]}` that it should close",
    )


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
    """More open brackets than later stages can handle."""
    return refusal(
        "too-many-levels",
        f"brackets are nested more than {MAX_BRACKETS} deep",
        span,
        help="compute the inner parts first and assign them to variables",
    )


# ---- indentation ---------------------------------------------------------------------------


def inconsistent_tabs(span: Span) -> CompileFailed:
    """A margin whose depth depends on the width of a tab."""
    return refusal(
        "mixed-tabs",
        "this line's indentation mixes tabs and spaces differently from the lines before it",
        span,
        help="indent with spaces only",
    )


def too_many_blocks(span: Span) -> CompileFailed:
    """More nested blocks than Python allows."""
    return refusal(
        "too-many-levels",
        f"blocks are nested more than {MAX_BLOCKS} deep",
        span,
        help="move the inner blocks into a function",
    )


def dedent_between(span: Span, width: int, inner: int, outer: int) -> CompileFailed:
    """A dedent to a width between two open blocks."""
    return refusal(
        "bad-dedent",
        f"this line is indented by {width}, which does not match any enclosing block",
        span,
        help=f"indent it by {inner} to go on with the block before it, or by {outer} to end it",
    )
