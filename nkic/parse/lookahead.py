"""Words whose meaning depends on the rest of the line.

The lexer marks every `with`, `match`, `case` and `type`, and classifies them at the line's end.
"""

from __future__ import annotations

from nkic.parse.tokens import Token
from nkic.parse.words import Words

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
        return index == first and _is_match(tokens, index, words)
    if kind == words.case:
        return index == first and in_match
    return _is_type_alias(tokens, index, first, words)


def _is_match(tokens: list[Token], index: int, words: Words) -> bool:
    """Whether the line starts with `match` and ends with a colon, which nothing else does."""
    return tokens[-1].kind == words.fixed[":"] and len(tokens) > index + 2


def _is_type_alias(tokens: list[Token], index: int, first: int, words: Words) -> bool:
    """Whether `type` is followed by a name at the start of a statement."""
    if index + 1 == len(tokens) or not (index == first or tokens[index - 1].text in ";:"):
        return False
    return tokens[index + 1].kind in (words.name, words.match, words.case, words.type)


def _classify_with(tokens: list[Token], index: int, words: Words) -> None:
    if index + 1 == len(tokens) or tokens[index + 1].text != "(":
        return
    if _holds_items(tokens, index + 1, words):
        tokens[index + 1] = tokens[index + 1]._replace(kind=words.with_open)


def _holds_items(tokens: list[Token], opening: int, words: Words) -> bool:
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
