"""Test the parser's tables: current, complete, reproducible, and rebuilt if they are missing."""

import ast
import json
import os
import subprocess
import sys
import sysconfig
import warnings
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
from nkic.source import actions, expression_actions, lexer, parser
from nkic.source.generate import generate
from nkic.source.lexer import lex
from nkic.source.nodes import walk
from nkic.source.parse import parse
from nkic.source.parser import Parser, Token, Unexpected, decode
from tests.harness.compare_ast import differences

GRAMMAR = parser.folder().joinpath(parser.GRAMMAR).read_bytes()
STORED = json.loads(parser.folder().joinpath(parser.TABLES).read_bytes())


def test_the_stored_tables_are_those_of_the_grammar() -> None:
    """If this fails, run `python -m nkic.source.generate`."""
    assert generate(GRAMMAR) == STORED


def test_every_function_that_makes_nodes_belongs_to_a_rule() -> None:
    wanted = {rule.action for rule in parser.load().rules} - {"", "+"}
    made = {
        name
        for module in (actions, expression_actions)
        for name, function in vars(module).items()
        if getattr(function, "__module__", "") == module.__name__
        and getattr(function, "__code__", None)
        and function.__code__.co_varnames[:1] == ("span",)
        and not name.startswith("_")
    }
    assert made | actions.RULES.keys() | expression_actions.RULES.keys() <= wanted
    assert set(actions.by_rule(parser.load())) == wanted


def test_a_grammar_with_a_conflict_is_refused() -> None:
    with pytest.raises(Exception, match="conflict"):
        generate(GRAMMAR.replace(b"?sum: term\n", b'?sum: term\n    | sum "+" sum -> binary\n'))


SECONDS = pytest.mark.slow  # each builds the tables, which takes seconds


@pytest.mark.parametrize(
    "content",
    [
        None,
        pytest.param(b"", marks=SECONDS),
        pytest.param(b"not json", marks=SECONDS),
        b'{"grammar": 0}',
    ],
)
def test_without_stored_tables_they_are_built(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / parser.GRAMMAR).write_bytes(GRAMMAR.replace(b"\n", b"\r\n"))
    if content is not None:
        (tmp_path / parser.TABLES).write_bytes(content)
    monkeypatch.setattr(parser, "folder", lambda: tmp_path)
    found = parser.load.__wrapped__()
    assert found.actions == parser.unpack(STORED).actions
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [parser.GRAMMAR] + [parser.TABLES] * (content is not None)
    ), "nothing is written"


def test_skipping_renamings_changes_nothing() -> None:
    """The parser's short cuts give the same results as the same tables without any."""
    source = SourceFile(
        "k.py", "def f(a, *b: int) -> c:\n    return -a ** b[1:2](x := 3) or not d\n"
    )
    plain = Parser(parser.load(), actions.by_rule(parser.load()))
    plain._jump = lambda key: parser.load().gotos[key[0]][key[1]]  # type: ignore[method-assign]
    slow = plain.parse(lexer.lex(source).tokens, "k.py")
    fast = parse(source)
    assert [(type(x), x.span) for x in walk(slow)] == [(type(x), x.span) for x in walk(fast)]


def test_parsing_does_not_import_lark() -> None:
    code = (
        "import sys; from nkic.base.source import SourceFile; from nkic.source.parse import parse;"
        "parse(SourceFile('k', 'a = f(1)')); sys.exit('lark' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("seed", ["1", pytest.param("2", marks=SECONDS)])
def test_the_tables_do_not_depend_on_the_hash_seed(seed: str) -> None:
    code = (
        "import sys, json; from nkic.source.generate import generate;"
        "json.dump(generate(sys.stdin.buffer.read()), sys.stdout)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=GRAMMAR,
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": seed},
    )
    assert json.loads(done.stdout) == STORED


# ------------------------------------------------------------------------------------------------
# Compare Lark's own parser with the loop of `nkic.source.parser`.
#
# They accept the same texts, and stop at the same token of others. Both use Lark's reading of the
# grammar: one runs Lark's tables with Lark's loop, the other the stored tables. The lexer is the
# same.

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


# ------------------------------------------------------------------------------------------------
# Test with Python's own standard library: the same trees, positions and errors as `ast`.

LIBRARY = Path(sysconfig.get_paths()["stdlib"])
FILES = [p for p in sorted(LIBRARY.rglob("*.py")) if "site-packages" not in p.parts]
ALWAYS = ("test_grammar", "test_fstring", "test_patma", "test_type_params", "dataclasses")


def sample() -> list[Path]:
    """Return about 30 files, spread evenly, and those with the rarest syntax."""
    small = [path for path in FILES if path.stat().st_size < 60_000]
    rare = [path for path in FILES if path.stem in ALWAYS]
    return sorted({*small[:: max(len(small) // 28, 1)], *rare})


def complaints(paths: list[Path]) -> Iterator[str]:
    """Return the differences between nkic's tree and Python's."""
    for path in paths:
        yield from (f"{path.name}: {text}" for text in complaints_of(path.read_bytes()))


def complaints_of(data: bytes) -> list[str]:
    source, ours, refusal = None, None, ""
    try:
        source = decode(data, "file.py")
        ours = parse(source)
    except CompileFailed as failed:
        refusal = failed.diagnostics[0].message
    theirs = python_tree(data)
    if source is None or ours is None or theirs is None:
        same = ours is None and theirs is None
        return [] if same else [f"refused by {'Python' if ours else 'us'}: {refusal}"]
    return list(differences(ours, source.text, theirs))[:5]


def python_tree(data: bytes) -> ast.Module | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(data)
        except (SyntaxError, ValueError):
            return None


def test_a_sample_of_the_library_parses_as_in_python() -> None:
    paths = sample()
    assert len(paths) >= 25
    assert list(complaints(paths)) == []


@pytest.mark.slow
def test_the_whole_library_parses_as_in_python() -> None:
    assert len(FILES) > 500
    assert list(complaints(FILES)) == []


def test_a_difference_would_be_seen() -> None:
    source = SourceFile("k.py", "x = (a, b)\n")
    for other in ("x = (a, c)\n", "x = (a , b)\n", "x = [a, b]\n", "x = (a, b, b)\n"):
        assert list(differences(parse(source), source.text, ast.parse(other)))
    assert not list(differences(parse(source), source.text, ast.parse(source.text)))


def test_names_in_other_scripts_have_columns_in_code_points() -> None:
    source = SourceFile("k.py", "é = 'ü' + ﬁx.ñ  # — \nnext\n")
    assert list(differences(parse(source), source.text, ast.parse(source.text))) == []
