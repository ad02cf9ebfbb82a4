"""Test operators: the table and the arithmetic agree; each operator is tried on critical values."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from nkic.machine.operators import ACTIVATIONS, ALU
from nkic.machine.targets import Engine
from nkic.simulate.numerics import elementwise, quiet, reduction

INF, NAN = math.inf, math.nan


@pytest.fixture(autouse=True)
def silent() -> Iterator[None]:
    with quiet():
        yield


def numbers(*values: float) -> NDArray[np.float32]:
    return np.array(values, np.float32)


def test_the_table_and_the_arithmetic_name_the_same_operators() -> None:
    rows = {name: row for name, row in ALU.items() if name != "average"}
    arithmetic = {name for name, row in rows.items() if row.group == "arithmetic"}
    assert set(elementwise.ARITHMETIC) == arithmetic
    assert set(elementwise.BITVEC) == set(rows) - arithmetic
    assert set(elementwise.INTEGERS) == {name for name, row in rows.items() if row.integers}
    assert set(elementwise.FUNCTIONS) == set(ACTIVATIONS)


BITWISE = {"bitwise_and", "bitwise_or", "bitwise_xor"}


def test_what_has_an_identity_can_be_reduced_and_nothing_else() -> None:
    with_identity = {name for name, row in ALU.items() if row.identity is not None}
    assert with_identity == reduction.OPERATORS | BITWISE
    assert {name for name, row in ALU.items() if row.reducible} < with_identity


@pytest.mark.parametrize("name", sorted(reduction.OPERATORS - {"average", "subtract"}))
def test_the_identity_changes_nothing(name: str) -> None:
    values = numbers(-3, 0, 1, 2.5) if "logical" not in name else numbers(0, 1)
    identity = np.float32(ALU[name].identity or 0)
    out = np.empty_like(values)
    elementwise.ARITHMETIC[name](np.full_like(values, identity), values, out)
    assert out.tolist() == values.tolist()


def test_engines_by_generation() -> None:
    assert ALU["add"].engines_of(2) == (Engine.VECTOR, Engine.GPSIMD)
    assert ALU["add"].engines_of(3) == (Engine.VECTOR, Engine.GPSIMD, Engine.SCALAR)
    assert ALU["abs_max"].engines_of(3) == ()
    assert ALU["power"].runs_on(Engine.GPSIMD, 2)
    assert not ALU["power"].runs_on(Engine.VECTOR, 4)


TWO = [
    ("add", (1, 2.0**-24), 1),
    ("add", (1, 3 * 2.0**-25), 1 + 2.0**-23),
    ("subtract", (1, 3), -2),
    ("multiply", (3e38, 2), INF),
    ("multiply", (2.0**-120, 2.0**-20), 2.0**-140),  # a subnormal
    ("maximum", (-1, -2), -1),
    ("minimum", (-1, -2), -2),
    ("maximum", (-INF, -INF), -INF),
    ("abs_max", (-5, 3), -5),
    ("abs_max", (1, -1), -1),
    ("abs_min", (5, -3), -3),
    ("abs_min", (1, -1), -1),
    ("power", (3, 2), 9),
    ("power", (2, 0.5), math.sqrt(2)),
    ("power", (-8, 3), -512),
    ("power", (0, -0.5), INF),
    ("equal", (0, -0.0), 1),
    ("equal", (NAN, NAN), 0),
    ("not_equal", (NAN, NAN), 1),
    ("greater", (2, 1), 1),
    ("greater", (1, 1), 0),
    ("greater_equal", (1, 1), 1),
    ("less", (2, 1), 0),
    ("less_equal", (1, 1), 1),
    ("logical_and", (0.5, -2), 1),
    ("logical_and", (0.5, -0.0), 0),
    ("logical_or", (0, 0.25), 1),
    ("logical_xor", (3, 0.25), 0),
    ("logical_xor", (0, 0.25), 1),
    ("bypass", (7, 1), 7),
]


@pytest.mark.parametrize(("name", "operands", "expected"), TWO)
@pytest.mark.parametrize("shape", [(2, 3), (2, 1), ()], ids=["tile", "column", "constant"])
def test_two_operands(
    name: str, operands: tuple[float, float], expected: float, shape: tuple[int, ...]
) -> None:
    a = np.full((2, 3), operands[0], np.float32)
    b = np.full(shape, operands[1], np.float32)
    elementwise.ARITHMETIC[name](a, b, a)
    assert (a == np.float32(expected)).all()


@pytest.mark.parametrize(("name", "operands", "expected"), TWO)
def test_a_constant_may_come_first(
    name: str, operands: tuple[float, float], expected: float
) -> None:
    a, b = np.array(operands[0], np.float32), np.full((2, 3), operands[1], np.float32)
    out = np.empty((2, 3), np.float32)
    elementwise.ARITHMETIC[name](a, b, out)
    assert (out == np.float32(expected)).all()


ONE = [
    ("abs", -2.5, 2.5),
    ("square", -3, 9),
    ("relu", -3, 0),
    ("relu", 3, 3),
    ("relu", INF, INF),
    ("rsqrt", 4, 0.5),
    ("rsqrt", 0, INF),
    ("reciprocal", -0.0, -INF),
    ("reciprocal", 3, 1 / 3),
    ("logical_not", 0, 1),
    ("logical_not", 2, 0),
]


@pytest.mark.parametrize(("name", "operand", "expected"), ONE)
def test_one_operand(name: str, operand: float, expected: float) -> None:
    out = numbers(operand)
    elementwise.ARITHMETIC[name](out, numbers(0), out)
    assert out[0] == np.float32(expected)


@pytest.mark.parametrize("name", ["maximum", "minimum", "relu"])
def test_zero_has_no_sign_and_nan_stays(name: str) -> None:
    for shape in ((4,), ()):
        a, b = numbers(-0.0, 0.0, NAN, -0.0), np.full(shape, -0.0, np.float32)
        elementwise.ARITHMETIC[name](a, b, a)
        assert np.isnan(a[2])
        assert a.view(np.uint32)[[0, 1, 3]].tolist() == [0, 0, 0]


def test_nan_in_either_operand_is_the_greater_and_the_lesser() -> None:
    for name in ("maximum", "minimum"):
        for b in (numbers(NAN, NAN), np.array(NAN, np.float32)):
            out = numbers(1, -INF)
            elementwise.ARITHMETIC[name](out, b, out)
            assert np.isnan(out).all()


@pytest.mark.parametrize(
    ("kind", "op", "operands", "expected"),
    [
        (np.int32, "add", (2**31 - 1, 1), -(2**31)),
        (np.uint32, "subtract", (0, 1), 2**32 - 1),
        (np.int32, "multiply", (65537, 65537), 131073),
        (np.int32, "add", (2**24 + 1, 2), 2**24 + 3),  # not a float32
        (np.int32, "maximum", (-1, 2**24 + 1), 2**24 + 1),
        (np.uint32, "minimum", (2**32 - 1, 5), 5),
        (np.int32, "less", (-1, 0), 1),
        (np.uint32, "equal", (2**24, 2**24 + 1), 0),
        (np.int32, "logical_xor", (7, 0), 1),
    ],
)
def test_32_bit_integers_are_exact_and_wrap(
    kind: type[np.generic], op: str, operands: tuple[int, int], expected: int
) -> None:
    a, b = np.array([operands[0]], kind), np.array([operands[1]], kind)
    out = np.empty_like(a)
    elementwise.INTEGERS[op](a, b, out)
    assert out.tolist() == [expected]


@pytest.mark.parametrize(
    ("op", "operands", "expected"),
    [
        ("bitwise_and", (0b1100, 0b1010), 0b1000),
        ("bitwise_or", (0b1100, 0b1010), 0b1110),
        ("bitwise_xor", (0b1100, 0b1010), 0b0110),
        ("invert", (0x0F, 0), 0xF0),
        ("left_shift", (0x81, 1), 0x02),
        ("right_shift", (0x81, 1), 0x40),  # logical: the sign is not copied
        ("left_shift", (1, 8), 0),
        ("right_shift", (255, 200), 0),
    ],
)
def test_bits(op: str, operands: tuple[int, int], expected: int) -> None:
    a, b = np.array([operands[0]], np.uint8), np.array([operands[1]], np.uint8)
    elementwise.BITVEC[op](a, b, a)
    assert a.tolist() == [expected]


def test_the_exact_path_has_the_operators_that_the_table_says() -> None:
    assert {name for name, row in ALU.items() if row.integers} == elementwise.INTEGERS.keys()
