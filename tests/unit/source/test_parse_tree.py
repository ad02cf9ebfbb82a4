"""Test syntax trees of single constructs for which Python's `ast` of this version is not an
oracle.
"""

import dataclasses
from typing import TypeVar

import pytest

from nkic.base.source import SourceFile, Span
from nkic.source import nodes
from nkic.source import nodes as n
from nkic.source.nodes import children, walk
from nkic.source.parse import parse

Kind = TypeVar("Kind", bound=n.Node)


def tree(text: str) -> n.Module:
    return parse(SourceFile("k.py", text))


def only(kind: type[Kind], text: str) -> Kind:
    (found,) = [node for node in walk(tree(text)) if isinstance(node, kind)]
    return found


def texts(kind: type[n.Node], text: str) -> list[str]:
    source = SourceFile("k.py", text)
    return [source.text_of(x.span) for x in walk(parse(source)) if isinstance(x, kind)]


# ---- f-strings -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        'f"{a}"',
        'f"é{a}ü{b!r}"',
        'f"{a:{b}.{c}}"',
        'f"""\n{\na\n}\n  {b}"""',
        "f'{a['x']}'",  # 3.12: the same quotes inside
        "f'{f'{f'{a}'}'}'",
        'f"{a}" "x" rf"\\d{b}"',
        "f'{a # note\n}'",
        "f'{x:%H:%M}{a}'",
        "f'{{{a}}}'",
        "f'\\N{DIGIT ONE}{a}\\x41'",
        "f'{a!r:>{b}}{(lambda q: q)(c)}'",
        "f'{a == b} {a != b} {c <= a}'",
        "f'{(a := 1)} {a:=5}'",
        "f'{ {1: a}[1] }'",
        "f'{yes if a else b}'",
    ],
)
def test_names_in_fields_stand_where_they_say(text: str) -> None:
    source = SourceFile("k.py", text)
    names = [node for node in walk(parse(source)) if isinstance(node, n.Name)]
    assert names
    assert [source.text_of(name.span) for name in names] == [name.id for name in names]


def test_parts_of_a_fstring() -> None:
    joined = only(n.JoinedStr, "f'a{{{x!r}b\\n'")
    first, field, last = joined.values
    assert isinstance(first, n.Constant)
    assert (first.value, first.span[1:]) == ("a{", (1, 3, 1, 6))
    assert isinstance(field, n.FormattedValue)
    assert (field.conversion, field.format_spec, field.span[1:]) == ("r", None, (1, 6, 1, 11))
    assert isinstance(last, n.Constant)
    assert (last.value, last.span[1:]) == ("b\n", (1, 11, 1, 14))


def test_format_of_a_field() -> None:
    outer = tree("f'{x:>{w}.2}'").body[0]
    assert isinstance(outer, n.Expr)
    assert isinstance(outer.value, n.JoinedStr)
    (field,) = outer.value.values
    assert isinstance(field, n.FormattedValue)
    assert field.format_spec is not None
    assert field.format_spec.span[1:] == (1, 5, 1, 12)
    assert [type(part).__name__ for part in field.format_spec.values] == [
        "Constant",
        "FormattedValue",
        "Constant",
    ]


@pytest.mark.parametrize(
    ("text", "shown", "conversion"),
    [
        ("f'{x=}'", "x=", "r"),
        ("f'{ x = }'", " x = ", "r"),
        ("f'{x = !s}'", "x = ", "s"),
        ("f'{x=:3}'", "x=", ""),
        ("f'{f(a=1)=}'", "f(a=1)=", "r"),
        ("f'{x # why\n =}'", "x \n =", "r"),
        ("f'{\"#\"=}'", '"#"=', "r"),
    ],
)
def test_equals_keeps_the_text_of_the_field(text: str, shown: str, conversion: str) -> None:
    field = only(n.FormattedValue, text)
    debug = next(x for x in walk(tree(text)) if isinstance(x, n.JoinedStr)).values[0]
    assert isinstance(debug, n.Constant)
    assert (debug.value, field.conversion) == (shown, conversion)


def test_adjacent_strings_are_one() -> None:
    assert only(n.Constant, "('a' \"b\"\n  r'\\c' '''d''')").value == "ab\\cd"
    assert only(n.Constant, r"b'a\x00' rb'\x'").value == b"a\x00\\x"
    assert [type(p).__name__ for p in only(n.JoinedStr, "'a' f'b{x}' 'c' f'd'").values] == [
        "Constant",
        "FormattedValue",
        "Constant",
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"'\a\b\f\n\r\t\v\\\'\"\0\101\x41\u00e9\U0001F600'", "\a\b\f\n\r\t\v\\'\"\0AAé😀"),
        (r"'\N{LATIN SMALL LETTER E WITH ACUTE}\q\8'", "é\\q\\8"),
        ("'a\\\nb'", "ab"),
        (r"b'\xff\377\u0041\N{x}'", b"\xff\xff\\u0041\\N{x}"),
        ("'''a\r\nb\rc'''", "a\nb\nc"),
    ],
)
def test_escapes(text: str, value: str | bytes) -> None:
    assert only(n.Constant, text).value == value


# ---- numbers -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0xFF_ff", 65535),
        ("0o17", 15),
        ("0b1_0", 2),
        ("1_000_000", 1000000),
        ("00_0", 0),
        ("0777.5", 777.5),
        ("0777j", 777j),
        (".5e-3", 0.0005),
        ("1.e2", 100.0),
        ("1_0.0_1", 10.01),
        ("1e1_0J", 1e10j),
        ("9" * 300, int("9" * 300)),
        ("1e400", float("inf")),
    ],
)
def test_numbers(text: str, value: complex) -> None:
    found = only(n.Constant, text).value
    assert (found, type(found)) == (value, type(value))


def test_a_keyword_may_follow_a_number_directly() -> None:
    assert [type(x).__name__ for x in walk(tree("x = 1if 0xfor 2else 3"))].count("IfExp") == 1


# ---- soft keywords -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "match = case = type = 1",
        "match(x)",
        "match[x]: int",
        "match: int = 3",
        "match.case(type)",
        "print(match, case=1, type=type)",
        "type(x)",
        "type in x",
        "type = type",
        "x = match if case else type",
        "match * a, b",
        "match -1",
    ],
)
def test_soft_keywords_are_names_elsewhere(text: str) -> None:
    kinds = {type(x).__name__ for x in walk(tree(text))}
    assert not kinds & {"Match", "MatchCase", "TypeAlias"}


@pytest.mark.parametrize(
    "subject",
    ["x", "(x)", "[x]", "-x", "*x, y", "x, ", "match", "case", "x := y", "{}", "lambda: 0"],
)
def test_match_with_any_subject(subject: str) -> None:
    found = only(n.Match, f"match {subject}:\n    case case:\n        match = case\n")
    assert len(found.cases) == 1


def test_case_inside_and_outside_of_its_block() -> None:
    text = (
        "match x:\n  case 1:\n    case = 2\n    match y:\n      case _: case(1)\n  case 3: pass\n"
    )
    matches = [x for x in walk(tree(text)) if isinstance(x, n.Match)]
    assert [len(x.cases) for x in matches] == [2, 1]


@pytest.mark.parametrize(
    "text", ["type X = int", "if x: type X = int", "a; type type = int", "type X[T] = list[T]"]
)
def test_type_statement(text: str) -> None:
    assert only(n.TypeAlias, text).name.id in ("X", "type")


def test_type_parameters() -> None:
    function = only(n.FunctionDef, "def f[T: int, *Ts, **P](x: T, *a: *Ts) -> T: pass")
    kinds = [(type(p).__name__, p.name) for p in function.type_params]
    assert kinds == [("TypeVar", "T"), ("TypeVarTuple", "Ts"), ("ParamSpec", "P")]
    assert function.args.vararg is not None
    assert isinstance(function.args.vararg.annotation, n.Starred)
    assert texts(n.TypeVar, "class A[T: (int, str)](B): pass") == ["T: (int, str)"]


# ---- with ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("head", "items"),
    [
        ("(a)", [("a", None)]),
        ("(a, b)", [("a", None), ("b", None)]),
        ("(a as b, c as d,)", [("a", "b"), ("c", "d")]),
        ("(a, b) as c", [("(a, b)", "c")]),
        ("(a), b", [("a", None), ("b", None)]),
        ("(a) as b, (c) as d", [("a", "b"), ("c", "d")]),
        ("(a, *b)", [("(a, *b)", None)]),
        ("(a for a in b)", [("(a for a in b)", None)]),
        ("(a := b)", [("a := b", None)]),
        ("()", [("()", None)]),
        ("(a)[0]", [("(a)[0]", None)]),
        ("(lambda x, *y: 0 as c)", None),
        ("(a, (b, c) as d)", [("a", None), ("(b, c)", "d")]),
    ],
)
def test_parentheses_after_with(head: str, items: list[tuple[str, str | None]] | None) -> None:
    source = SourceFile("k.py", f"with {head}: pass\n")
    if items is None:
        items = [("lambda x, *y: 0", "c")]
    found = only(n.With, source.text)
    assert [
        (
            source.text_of(i.context_expr.span),
            i.optional_vars and source.text_of(i.optional_vars.span),
        )
        for i in found.items
    ] == items


# ---- small points --------------------------------------------------------------------------


def test_definitions_know_where_their_name_is() -> None:
    text = "@a\n@b(1)\nasync  def  f(x): pass\nclass C: pass\n"
    source = SourceFile("k.py", text)
    function, cls = parse(source).body
    assert isinstance(function, n.FunctionDef)
    assert isinstance(cls, n.ClassDef)
    assert source.text_of(function.name_span) == "f"
    assert source.text_of(cls.name_span) == "C"
    assert (function.is_async, function.span[1:3], len(function.decorators)) == (True, (3, 1), 2)


def test_names_are_compared_in_normal_form() -> None:
    assert {x.id for x in walk(tree("ﬁ = fi = x.ﬁ")) if isinstance(x, n.Name)} == {"fi", "x"}


def test_lines_end_as_in_python() -> None:
    for end in ("\n", "\r\n", "\r"):
        module = tree(f"a = 1{end}if a:{end}    b = \\{end}  2{end}")
        assert [s.span.line for s in module.body] == [1, 2]
        assert module.body[1].span.end_line == 4


def test_a_form_feed_starts_the_margin_anew() -> None:
    assert len(tree("if a:\n    b\n  \f    c\n").body[0].body) == 2  # type: ignore[union-attr]


@pytest.mark.parametrize("text", ["", "\n\n", "# only\n", "   \n\t# blank"])
def test_files_without_statements(text: str) -> None:
    assert tree(text).body == ()


def test_the_same_text_is_parsed_once() -> None:
    first = tree("kept = 1\n")
    assert tree("kept = 1\n") is first
    assert parse(SourceFile("other.py", "kept = 1\n")) is not first
    assert tree("kept = 2\n") is not first


@pytest.mark.parametrize(
    "text",
    [
        "def f(): return (i for i in a if await g(i))",
        "x = (i async for i in a)",
        "async def f(): return [await g(i) async for i in await h()]",
        "async def f():\n  async with a as b: yield await c",
        "def f(): x = lambda: (yield)",
        "x = lambda: (yield)",
        "for a in b:\n  try: continue\n  finally: break",
        "while a:\n  with b:\n    match c:\n      case d: break",
        "for a in b:\n  for c in d: pass\n  else: break",
        "def f():\n  class A:\n    def g(self): return (yield)\n  return",
    ],
)
def test_statements_in_their_place(text: str) -> None:
    assert len(tree(text).body) == 1


# ------------------------------------------------------------------------------------------------
# Test nodes and functions that walk them.

HERE = Span("k.py", 3, 1, 3, 2)


def name(text: str) -> n.Name:
    return n.Name(HERE, text)


def test_children_are_those_of_all_fields_in_order() -> None:
    call = n.Call(HERE, name("f"), (name("a"), name("b")), (n.Keyword(HERE, "k", name("c")),))
    assert [type(x).__name__ for x in children(call)] == ["Name", "Name", "Name", "Keyword"]
    empty = n.Dict(HERE, (None, name("k")), (name("a"), name("b")))
    assert [x.id for x in children(empty) if isinstance(x, n.Name)] == ["k", "a", "b"]


def test_values_that_are_no_nodes_are_no_children() -> None:
    function = n.FunctionDef(HERE, "f", HERE, n.Arguments(HERE), (n.Pass(HERE),))
    assert [type(x) for x in children(function)] == [n.Arguments, n.Pass]
    assert list(children(n.Constant(HERE, ("not", "nodes")))) == []  # type: ignore[arg-type]
    assert list(children(n.Global(HERE, ("a", "b")))) == []


def test_walk_gives_parents_first_and_then_from_left_to_right() -> None:
    left = n.BinOp(HERE, name("a"), "+", name("b"))
    tree = n.Expr(HERE, n.BinOp(HERE, left, "*", name("c")))
    seen = [x.id if isinstance(x, n.Name) else type(x).__name__ for x in walk(tree)]
    assert seen == ["Expr", "BinOp", "BinOp", "a", "b", "c"]


def test_nodes_are_frozen_and_equal_only_to_themselves() -> None:
    first, second = name("a"), name("a")
    assert first != second
    assert len({first, second, first}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.id = "b"  # type: ignore[misc]
    assert repr(first) == "<Name at k.py:3:1>"


@pytest.mark.parametrize("module", [nodes, nodes, nodes])
def test_every_node_starts_with_its_span_and_is_exported(module: object) -> None:
    found = [x for x in vars(module).values() if isinstance(x, type) and issubclass(x, n.Node)]
    for kind in found:
        assert dataclasses.fields(kind)[0].name == "span"
        assert getattr(n, kind.__name__) is kind
        assert not hasattr(kind(HERE), "__dict__") if kind is n.Pass else True
