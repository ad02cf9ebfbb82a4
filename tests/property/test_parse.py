"""Random programs and random damage are parsed as by Python's own parser."""

from __future__ import annotations

import ast
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nkic.base.diagnostics import CompileFailed
from nkic.base.source import SourceFile
from nkic.source.parse import parse
from tests.harness.compare_ast import differences

HERE = Path(__file__).parents[1]
SOURCES = [
    path.read_text("utf-8")
    for path in sorted((HERE.parent / "samples").rglob("*.py")) + sorted(HERE.glob("unit/**/*.py"))
    if 100 < path.stat().st_size < 12_000
]


def statements(text: str) -> list[str]:
    """Return the shorter statements at the top of a file, as they are written."""
    lines = text.split("\n")
    ends = [(s.lineno - 1, s.end_lineno or 0) for s in ast.parse(text).body]
    return ["\n".join(lines[start:end]) + "\n" for start, end in ends if end - start < 40]


STATEMENTS = [statement for text in SOURCES for statement in statements(text)]
# Python checks these with its symbol table, and nkic in resolve, which knows the names.
LENIENT = (
    "future feature",
    "from __future__ imports must occur",
    "global declaration",
    "nonlocal",
    "import * only allowed",
    "cannot assign to __debug__",
    "assignment expression cannot",
    "name capture",
    "wildcard makes remaining patterns unreachable",
    "alternative patterns bind different names",
    "multiple assignments to name",
    "mapping pattern checks duplicate key",
    "attribute name repeated in class pattern",
    "'return' with value in async generator",
    "cannot appear in an except* block",
)

# ---- random programs -----------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "é", "match", "case", "type", "_", "x1"])
OPERATORS = st.sampled_from([ast.Add, ast.Sub, ast.Mult, ast.MatMult, ast.Pow, ast.BitOr])
COMPARISONS = st.sampled_from([ast.Lt, ast.Eq, ast.In, ast.NotIn, ast.Is, ast.IsNot])
LITERALS = st.one_of(
    st.integers(0, 10**6),
    st.text("aé'\"\\\n{}", max_size=4),
    st.binary(max_size=3),
    st.sampled_from([None, True, ..., 1.5, 2j]),
)


def loaded(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def lists(values: st.SearchStrategy[ast.expr]) -> st.SearchStrategy[list[ast.expr]]:
    return st.lists(values, min_size=1, max_size=3)


def larger(values: st.SearchStrategy[ast.expr]) -> st.SearchStrategy[ast.expr]:
    """Return expressions one level deeper."""
    clause = st.builds(
        ast.comprehension,
        NAMES.map(lambda name: ast.Name(name, ast.Store())),
        values,
        st.lists(values, max_size=1),
        st.just(0),
    )
    return st.one_of(
        st.builds(lambda a, op, b: ast.BinOp(a, op(), b), values, OPERATORS, values),
        st.builds(lambda vs: ast.BoolOp(ast.And(), vs), st.lists(values, min_size=2, max_size=3)),
        st.builds(lambda op, v: ast.UnaryOp(op(), v), st.sampled_from([ast.Not, ast.USub]), values),
        st.builds(lambda a, op, b: ast.Compare(a, [op()], [b]), values, COMPARISONS, values),
        st.builds(ast.IfExp, values, values, values),
        st.builds(lambda vs: ast.Tuple(vs, ast.Load()), lists(values)),
        st.builds(lambda vs: ast.List(vs, ast.Load()), st.lists(values, max_size=3)),
        st.builds(lambda k, v: ast.Dict([k, None], [v, v]), values, values),
        st.builds(lambda v, a: ast.Attribute(v, a, ast.Load()), values, NAMES),
        st.builds(lambda v, i: ast.Subscript(v, i, ast.Load()), values, values),
        st.builds(
            lambda v, a, b: ast.Subscript(v, ast.Slice(a, None, b), ast.Load()),
            values,
            st.none() | values,
            st.none() | values,
        ),
        st.builds(
            lambda f, vs, k, v: ast.Call(f, vs, [ast.keyword(k, v)]),
            values,
            lists(values),
            NAMES,
            values,
        ),
        st.builds(lambda n, v: ast.NamedExpr(ast.Name(n, ast.Store()), v), NAMES, values),
        st.builds(lambda v, c: ast.ListComp(v, [c]), values, clause),
        st.builds(lambda v, c: ast.GeneratorExp(v, [c]), values, clause),
        st.builds(lambda v: ast.Call(loaded("f"), [ast.Starred(v, ast.Load())], []), values),
    )


EXPRESSIONS = st.recursive(NAMES.map(loaded) | LITERALS.map(ast.Constant), larger, max_leaves=12)


def agree(text: str) -> None:
    source = SourceFile("k.py", text)
    assert list(differences(parse(source), text, ast.parse(text))) == []


@settings(max_examples=150)
@given(EXPRESSIONS)
def test_random_expressions_parse_as_in_python(expression: ast.expr) -> None:
    agree(ast.unparse(ast.fix_missing_locations(ast.Expr(expression))))


@settings(max_examples=60)
@given(st.sampled_from(STATEMENTS))
def test_other_layouts_of_real_code_parse_as_in_python(statement: str) -> None:
    agree(ast.unparse(ast.parse(statement)))


# ---- random damage -------------------------------------------------------------------------

WORDS = """
( ) [ ] { } : , = == := * ** + - not in if else for lambda x 1 's' yield await def class . ... @ ->
# ` ! match case type with as import del try 0777 1_ é “ < > None pass
"""
TOKENS = st.sampled_from([*WORDS.split(), "\n", "    ", "\t", "\\", '"', 'f"{x}"', "\\\n"])


@st.composite
def damaged(draw: st.DrawFn) -> str:
    """Return a statement of real code with a few characters missing, added or replaced."""
    text = draw(st.sampled_from(STATEMENTS))
    start = draw(st.integers(0, len(text) - 1))
    end = start + draw(st.sampled_from([0, 1, 1, 2, 5]))
    return text[:start] + draw(st.just("") | TOKENS) + text[end:]


def python_refuses(text: str) -> str | None:
    """Return Python's reason to reject `text`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(text, "k.py", "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            return str(error.args[0])
    return None


@settings(max_examples=250)
@given(damaged())
def test_damaged_code_is_refused_where_python_refuses_it(text: str) -> None:
    reason = python_refuses(text)
    try:
        parse(SourceFile("k.py", text))
    except CompileFailed as failed:
        (found,) = failed.diagnostics
        assert found.primary is not None
        span = found.primary.span
        assert 1 <= span.line <= text.count("\n") + 2
        assert span[1:3] <= span[3:5]
        assert reason is not None or "f'" in text or 'f"' in text, found.message
        return
    assert reason is None or any(part in reason for part in LENIENT) or "f-string" in reason, reason


@settings(max_examples=300)
@given(st.lists(TOKENS | st.text(max_size=3), max_size=12).map(" ".join))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        parse(SourceFile("k.py", text))
    except CompileFailed as failed:
        assert len(failed.diagnostics) == 1


@pytest.mark.parametrize("text", SOURCES[:5])
def test_every_single_deletion_in_a_line_is_survived(text: str) -> None:
    for start in range(0, min(len(text), 3000), 11):
        damaged_text = text[:start] + text[start + 1 :]
        try:
            parse(SourceFile("k.py", damaged_text))
        except CompileFailed:
            assert python_refuses(damaged_text) is not None
