"""Compare Lark's own parser with the loop of `nkic.source.parser`.

They accept the same texts, and stop at the same token of others. Both use Lark's reading of the
grammar: one runs Lark's tables with Lark's loop, the other the stored tables. The lexer is the
same.
"""

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from lark import Lark, UnexpectedToken
from lark import Token as LarkToken
from lark.common import LexerConf
from lark.lexer import Lexer

from nkic.base.diagnostics import CompileFailed
from nkic.base.source import SourceFile
from nkic.source import parser
from nkic.source.lexer import lex
from nkic.source.parser import Parser, Token, Unexpected

PROJECT = Path(__file__).resolve().parents[3]
FOLDERS = ("samples", "tests/files", "nkic/language/stdlib")
TEXTS = sorted(path for folder in FOLDERS for path in (PROJECT / folder).rglob("*.py"))
MUTANTS = 3  # of each text


class _Given(Lexer):
    """A lexer for Lark that returns existing tokens."""

    def __init__(self, lexer_conf: LexerConf) -> None:
        super().__init__()

    def lex(self, tokens: Any) -> Iterator[LarkToken]:  # type: ignore[override]
        names = parser.load().terminals
        for index, token in enumerate(tokens[:-1]):  # Lark adds the end token itself
            yield LarkToken(names[token.kind], token.text, start_pos=index)


@cache
def lark() -> Lark:
    grammar = parser.folder().joinpath(parser.GRAMMAR).read_bytes().decode()
    return Lark(grammar, parser="lalr", lexer=_Given, start="file", maybe_placeholders=True)


@cache
def ours() -> Parser:
    """Run the loop with functions that build nothing, since mutants need not make sense."""
    names = {rule.action for rule in parser.load().rules} - {"", "+"}
    return Parser(parser.load(), dict.fromkeys(names, lambda *_: None))


def stop_of_lark(tokens: list[Token]) -> int | None:
    """Return the index of the token that is rejected, or None."""
    try:
        lark().parse(tokens)
    except UnexpectedToken as error:
        refused = error.token
        return len(tokens) - 1 if refused.type == "$END" else int(refused.start_pos)
    return None


def stop_of_ours(tokens: list[Token]) -> int | None:
    try:
        ours().parse(tokens, "t.py")
    except Unexpected as error:
        return error.index
    return None


def mutant(tokens: list[Token], random: Random) -> list[Token]:
    """Drop, double, move or replace one token; never the end."""
    changed, at = list(tokens), random.randrange(max(1, len(tokens) - 1))
    kind = random.choice(("drop", "double", "move", "become"))
    if kind == "drop":
        del changed[at]
    elif kind == "double":
        changed.insert(at, changed[at])
    elif kind == "move":
        changed.insert(random.randrange(len(tokens) - 1), changed.pop(at))
    else:
        changed[at] = random.choice(tokens[:-1] or tokens)
    return changed if len(changed) > 1 else list(tokens)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(PROJECT)))
def test_both_parsers_stop_at_the_same_token(path: Path) -> None:
    try:
        tokens = lex(SourceFile(path.name, path.read_text("utf-8"))).tokens
    except (CompileFailed, UnicodeDecodeError):
        return  # no tokens, no parser
    random = Random(path.name)
    for changed in (tokens, *(mutant(tokens, random) for _ in range(MUTANTS))):
        assert stop_of_ours(changed) == stop_of_lark(changed)


def test_mutants_are_refused_as_a_rule() -> None:
    """So that the comparison also covers errors, at tokens all over the texts."""
    random, found = Random(0), []
    for path in sorted((PROJECT / "samples").glob("*/kernel.py")):
        tokens = lex(SourceFile(path.name, path.read_text("utf-8"))).tokens
        assert stop_of_ours(tokens) is None
        found += [stop_of_ours(mutant(tokens, random)) for _ in range(10)]
    stops = [stop for stop in found if stop is not None]
    assert len(stops) > len(found) / 2
    assert len({*stops}) > len(stops) / 2
