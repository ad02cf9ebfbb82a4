"""Test nodes and functions that walk them."""

import dataclasses

import pytest

from nkic.base.source import Span
from nkic.source import nodes
from nkic.source import nodes as n
from nkic.source.nodes import children, walk

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
