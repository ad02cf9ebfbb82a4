"""Huge or deeply nested source is parsed, or rejected at a place, in linear time."""

import sys

import pytest

from nkic.base.diagnostics import CompileFailed
from nkic.base.source import SourceFile
from nkic.source import nodes as n
from nkic.source.nodes import walk
from nkic.source.parse import parse
from nkic.source.parser import MAX_BLOCKS, MAX_BRACKETS

MANY = 20_000


@pytest.fixture(autouse=True)
def forget() -> None:
    """Keep the huge trees out of the cache."""
    parse.cache_clear()


def parsed(text: str) -> n.Module:
    return parse.__wrapped__(SourceFile("k.py", text))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("x = " + "+".join(["a"] * MANY), 2 * MANY + 2),
        ("x = " + " and ".join(["a"] * MANY), MANY + 4),
        ("x = a" + ".b" * MANY, MANY + 4),
        ("x = a" + "()" * MANY, MANY + 4),
        ("x = [" + "a," * MANY + "]", MANY + 4),
        ("x = " + "'a' " * MANY, 4),
        ("if a: b\n" + "elif a: b\n" * MANY, 4 * MANY + 5),
        ("@a\n" * MANY + "def f(): pass", MANY + 4),
        ("x = " + "[" * MAX_BRACKETS + "]" * MAX_BRACKETS, MAX_BRACKETS + 3),
        ("x = " + "f(" * MAX_BRACKETS + ")" * MAX_BRACKETS, 2 * MAX_BRACKETS + 3),
        ("x = " + "not " * 1500 + "a", 1504),
    ],
)
def test_long_and_deep_text_parses(text: str, count: int) -> None:
    assert sum(1 for _ in walk(parsed(text))) == count


def test_blocks_up_to_the_limit() -> None:
    text = "".join(" " * depth + "if a:\n" for depth in range(MAX_BLOCKS - 1))
    module = parsed(text + " " * (MAX_BLOCKS - 1) + "pass\n")
    assert sum(isinstance(node, n.If) for node in walk(module)) == MAX_BLOCKS - 1


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("x = " + "(" * 5000 + "1" + ")" * 5000, (1, 205)),
        ("[" * 100_000, (1, 201)),
        ("x = " + "{1:" * 300, (1, 605)),
        ("f'{" * 300, (1, 603)),
        ("x = f'{1:{2:{3:{4}}}}'", (1, 16)),
        ("".join(" " * depth + "if a:\n" for depth in range(150)) + " " * 150 + "b", (101, 1)),
        ("x = " + "not " * MANY + "a", (1, 7997)),
        ("x = " + "-" * MANY + "a", (1, 2003)),
        ("x = " + "**".join(["a"] * MANY), (1, 3002)),
        ("x = " + "a if b else " * MANY + "c", None),
        ("x = " + "lambda: " * MANY + "c", None),
    ],
)
def test_text_nested_too_deep_is_refused_where_it_is(
    text: str, place: tuple[int, int] | None
) -> None:
    with pytest.raises(CompileFailed) as raised:
        parsed(text)
    (found,) = raised.value.diagnostics
    assert found.code.slug == "too-many-levels"
    assert found.primary is not None
    if place is not None:
        assert found.primary.span[1:3] == place


def test_no_recursion_is_needed() -> None:
    """The limits hold however little is left of Python's own stack."""
    text = "x = " + "[" * MAX_BRACKETS + "-" * 1000 + "a" + "]" * MAX_BRACKETS
    limit, used = sys.getrecursionlimit(), _depth()
    sys.setrecursionlimit(used + 60)
    try:
        module = parsed(text)
    finally:
        sys.setrecursionlimit(limit)
    assert sum(isinstance(node, n.UnaryOp) for node in walk(module)) == 1000


def _depth() -> int:
    frame, depth = sys._getframe(), 0
    while frame.f_back is not None:
        frame, depth = frame.f_back, depth + 1
    return depth
