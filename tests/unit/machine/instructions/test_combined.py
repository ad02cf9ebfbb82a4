"""Test which instructions do the work of two, and the calls that advice writes for them."""

from typing import Any

import pytest

from nkic.machine.instructions import ROWS
from nkic.machine.instructions.combined import (
    NEGATED,
    adding_up,
    is_addition,
    is_multiplication,
    is_sum_of_columns,
    joined,
    joining,
    may_add_up,
    negating,
)

TIMES = {"op0": "nl.multiply", "operand0": "s"}
TIMES_PLUS = TIMES | {"op1": "nl.add", "operand1": "b"}
FIRST = {"data": "data", "op0": "op0", "operand0": "operand0"}
SCALED = ("activation", {"data": "data", "scale": "operand0"})


@pytest.mark.parametrize(
    ("made", "then", "found"),
    [
        (TIMES, {"op": "nl.exp"}, SCALED),
        ({"op0": "multiply", "operand0": 2.0, "op1": None}, {"bias": None, "scale": 1.0}, SCALED),
        (TIMES | {"reverse0": False}, {"scale": "1"}, SCALED),
        (TIMES_PLUS, {"scale": "1.0"}, (SCALED[0], SCALED[1] | {"bias": "operand1"})),
        ({"op0": "nl.add"}, {}, ("activation", {"data": "data", "bias": "operand0"})),
        ({"op0": "nl.subtract"}, {}, ("activation", {"data": "data", "bias": NEGATED})),
        ({"op0": "nl.maximum"}, {}, None),
        (TIMES | {"op1": "nl.subtract"}, {}, None),
        (TIMES, {"bias": "b"}, None),
        (TIMES, {"scale": "2.0"}, None),
        (TIMES | {"reverse0": True}, {}, None),
    ],
)
def test_an_activation_scales_and_shifts_first(
    made: dict[str, Any], then: dict[str, Any], found: object
) -> None:
    assert joined("tensor_scalar", made, "activation", then, "data") == found
    assert joined("tensor_tensor", made, "activation", then, "data") is None
    assert joined("tensor_scalar", made, "activation", then, "bias") is None


THEN_SCALAR = FIRST | {"op1": "then op0", "operand1": "then operand0"}


@pytest.mark.parametrize(
    ("made", "then", "found"),
    [
        (TIMES, {"op0": "nl.add", "operand0": "b"}, ("tensor_scalar", THEN_SCALAR)),
        (TIMES_PLUS, {"op0": "nl.add"}, None),
        (TIMES, {"op0": "nl.add", "op1": "nl.add"}, None),
        (TIMES, {"op0": "nl.subtract", "reverse0": "True"}, None),
    ],
)
def test_a_second_scalar_follows_the_first(
    made: dict[str, Any], then: dict[str, Any], found: object
) -> None:
    assert joined("tensor_scalar", made, "tensor_scalar", then, "data") == found
    assert joined("tensor_scalar", made, "tensor_scalar", then, "operand0") is None


@pytest.mark.parametrize(
    ("op", "reads", "other"),
    [
        ("nl.add", "data1", "data2"),
        ("nl.subtract", "data1", "data2"),
        ("nl.add", "data2", "data1"),
        ("nl.minimum", "data2", "data1"),
        ("nl.subtract", "data2", None),
        ("nl.add", "dst", None),
    ],
)
def test_a_tile_follows_a_scalar(op: str, reads: str, other: str | None) -> None:
    """As the left operand, so that only a commutative operator may take it as the right one."""
    more = {"op1": "then op", "operand1": f"then {other}"}
    found = None if other is None else ("scalar_tensor_tensor", FIRST | more)
    assert joined("tensor_scalar", TIMES, "tensor_tensor", {"op": op}, reads) == found
    assert joined("tensor_scalar", TIMES_PLUS, "tensor_tensor", {"op": op}, reads) is None
    assert joined("tensor_scalar", TIMES, "tensor_copy", {"op": op}, reads) is None


def test_the_calls_that_advice_writes() -> None:
    made = {"dst": "t", "data": "x"} | TIMES
    then = {"dst": "out", "op": "nl.exp", "data": "t"}
    found = joined("tensor_scalar", made, "activation", then, "data")
    assert found is not None
    assert joining(found, made, then, "nisa") == (
        "nisa.activation(dst=out, op=nl.exp, data=x, scale=s)"
    )
    then = {"dst": "out", "op": "nl.add", "data1": "t", "data2": "y"}
    found = joined("tensor_scalar", made, "tensor_tensor", then, "data1")
    assert found is not None
    assert joining(found, made, then, "isa") == (
        "isa.scalar_tensor_tensor(dst=out, data=x, op0=nl.multiply, operand0=s, op1=nl.add, "
        "operand1=y)"
    )
    assert joining(found, {}, {}, "isa") == (
        "isa.scalar_tensor_tensor(dst=…, data=…, op0=…, operand0=…, op1=…, operand1=…)"
    )
    less = {"op0": "nl.subtract", "operand0": "m", NEGATED: "minus_m"}
    assert negating(less, "nisa") == [
        "minus_m = nl.ndarray(m.shape, nl.float32)",
        "nisa.tensor_scalar(dst=minus_m, data=m, op0=nl.multiply, operand0=-1.0)",
    ]
    total = "reduce_op=nl.add, reduce_res=sums, reduce_cmd=nisa.reduce_cmd.reset_reduce)"
    assert adding_up({"dst": "out", "op": "nl.exp"}, "sums", "nisa", "nl") == (
        f"nisa.activation(dst=out, op=nl.exp, {total}"
    )
    square = {"dst": "out", "data1": "x", "data2": "x", "op": "nl.multiply"}
    assert adding_up(square, "sums", "nisa", "nl") == (
        f"nisa.activation(dst=out, op=nl.square, data=x, {total}"
    )


def test_what_instructions_are_is_asked_of_their_attributes() -> None:
    pair, fold, function = (ROWS[n] for n in ("tensor_tensor", "tensor_reduce", "activation"))
    for op in ("add", "multiply", "subtract"):
        assert is_addition(pair, {"op": op}) == (op == "add")
        assert is_multiplication(pair, {"op": op}) == (op == "multiply")
        for negate in (False, True):
            sums = is_sum_of_columns(fold, {"op": op, "negate": negate})
            assert sums == (op == "add" and not negate)
    assert not is_addition(fold, {"op": "add"}) and not is_multiplication(fold, {"op": "multiply"})
    assert not is_sum_of_columns(pair, {"op": "add", "negate": False})
    assert may_add_up(function, {"reduce_op": None})
    assert not may_add_up(function, {"reduce_op": "add"})
    assert not may_add_up(fold, {"reduce_op": None})
