"""Test the parser's tables: current, complete, reproducible, and rebuilt if they are missing."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from nkic.base.source import SourceFile
from nkic.source import actions, expression_actions, lexer, parser
from nkic.source.generate import generate
from nkic.source.nodes import walk
from nkic.source.parse import parse
from nkic.source.parser import Parser

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
