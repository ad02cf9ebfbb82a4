"""Test the vector engine's rows, parameter by parameter.

Random tiles are tested in property/test_instructions.py.
"""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import nkic
from nkic.base.diagnostics import ArtifactFailed
from nkic.base.source import SourceFile
from nkic.machine.operators import ALU
from nkic.machine.targets import Engine
from tests.harness.instruction import Tile, call, run, run_one, tile
from tests.harness.reference import numpy_type, same, single, stored

Array = NDArray[Any]
RNG = np.random.default_rng(7)
X = RNG.standard_normal((8, 12)).astype(np.float32)
Y = np.where(RNG.random((8, 12)) < 0.3, X, RNG.standard_normal((8, 12))).astype(np.float32)
Y[0, :3] = 0, -0.0, np.inf
WORDS = RNG.integers(0, 2**32, (8, 12), np.uint32)
FORMULAS: dict[str, Callable[[Array, Any], Array]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "logical_and": lambda a, b: (a != 0) & (b != 0),
    "logical_or": lambda a, b: (a != 0) | (b != 0),
    "logical_xor": lambda a, b: (a != 0) != (b != 0),
    "abs_max": lambda a, b: np.where(np.abs(a) > np.abs(b), a, b),
    "abs_min": lambda a, b: np.where(np.abs(a) < np.abs(b), a, b),
    "equal": np.equal,
    "not_equal": np.not_equal,
    "greater_equal": np.greater_equal,
    "greater": np.greater,
    "less_equal": np.less_equal,
    "less": np.less,
    "power": lambda a, b: np.power(a, b),
    "logical_not": lambda a, b: a == 0,
    "abs": lambda a, b: np.abs(a),
    "square": lambda a, b: a * a,
    "relu": lambda a, b: np.maximum(a, 0),
    "rsqrt": lambda a, b: 1 / np.sqrt(a),
    "reciprocal": lambda a, b: 1 / a,
    "bypass": lambda a, b: a,
}
BITS: dict[str, Callable[[Any, Any], Array]] = {
    "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b,
    "invert": lambda a, b: ~a,
    "left_shift": lambda a, b: np.where(b < 8 * a.itemsize, a << (b % (8 * a.itemsize)), 0),
    "right_shift": lambda a, b: np.where(b < 8 * a.itemsize, a >> (b % (8 * a.itemsize)), 0),
}


def computed(op: str, a: Array, b: Any) -> Array:
    with np.errstate(all="ignore"):
        return single(FORMULAS[op](a.astype(np.float64), np.float64(b)))


def engine_of(op: str) -> str:
    engines = ALU[op].engines_of(4)
    return (Engine.VECTOR if Engine.VECTOR in engines else engines[0]).value


def test_every_operator_is_tried() -> None:
    assert {*FORMULAS, *BITS, "average"} == set(ALU)


# tensor_copy, memset


@pytest.mark.parametrize("engine", ["vector", "scalar", "gpsimd"])
def test_tensor_copy_of_one_type_moves_bits(engine: str) -> None:
    x = tile(WORDS.view(np.int32))
    assert np.array_equal(
        run_one("tensor_copy", engine=engine, dst=x.like(), src=x), WORDS.view("i4")
    )


def test_tensor_copy_between_types_goes_through_float32() -> None:
    x = tile(np.array([[2**24 + 1, -5, 300]], np.int32))
    found = run_one("tensor_copy", dst=x.like(dtype="uint32"), src=x)
    assert found.tolist() == [[2**24, 0, 300]]
    found = run_one("tensor_copy", dst=x.like(dtype="int8"), src=x)
    assert found.tolist() == [[127, -5, 127]]


def test_tensor_copy_rounds_to_even_and_saturates() -> None:
    """Release notes of NKI 0.6.0: casts to integers match the hardware's."""
    x = tile(np.array([[0.5, 1.5, 2.5, -0.5, -1.5, 3e9, -3e9, np.nan]], np.float32))
    for dtype, expected in {
        "int32": [0, 2, 2, 0, -2, 2**31 - 1, -(2**31), 0],
        "uint8": [0, 2, 2, 0, 0, 255, 0, 0],
        "int16": [0, 2, 2, 0, -2, 32767, -32768, 0],
    }.items():
        assert run_one("tensor_copy", dst=x.like(dtype=dtype), src=x).tolist() == [expected]


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        ("float32", 0.1, np.float32(0.1)),
        ("float32", 1e39, np.inf),
        ("bfloat16", 0.1, ml_dtypes.bfloat16(0.1)),
        ("float16", float("-inf"), -np.inf),
        ("float8_e5m2", 3, 3.0),
        ("int32", 2**31 - 1, 2**31 - 1),
        ("uint32", 2**32 - 1, 2**32 - 1),
        ("int32", 16_777_217, 16_777_217),
        ("int8", -128, -128),
        ("uint8", 255, 255),
        ("int16", 0.0, 0),
        ("bool", 1, 1),
    ],
)
@pytest.mark.parametrize("engine", ["vector", "gpsimd"])
def test_memset(dtype: str, value: float, expected: float, engine: str) -> None:
    dst = tile((4, 2, 3), dtype=dtype, steps=(5, -1))
    found = run_one("memset", engine=engine, dst=dst, value=value)
    assert (found == expected).all() and found.shape == (4, 2, 3)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn_x4", "float8_e5m2_x4", "float4_e2m1fn_x4"])
def test_packed_types_are_set_to_zero_and_moved(dtype: str) -> None:
    dst = tile((4, 3), dtype=dtype)
    assert not run_one("memset", target="trn3", dst=dst, value=0).any()
    x = tile(WORDS[:, :4].astype(f"u{2 if 'float4' in dtype else 4}"), dtype=dtype)
    found = run_one("tensor_copy", target="trn3", dst=x.like(), src=x)
    assert np.array_equal(found, WORDS[:, :4].astype(found.dtype))


@pytest.mark.parametrize(
    ("row", "values"),
    [
        ("tensor_tensor", {"data1": "x", "data2": "x", "op": "add"}),
        ("tensor_scalar", {"data": "x", "op0": "add", "operand0": 1.0}),
        ("tensor_reduce", {"data": "x", "op": "add", "axis": (1,)}),
        ("activation", {"data": "x", "op": "exp"}),
        ("iota", {"pattern": ((1, 1),)}),
        ("reciprocal", {"data": "x"}),
    ],
)
def test_packed_types_are_not_computed_with(row: str, values: dict[str, Any]) -> None:
    x = tile((4, 1), dtype="float8_e4m3fn_x4")
    given: dict[str, Any] = {name: x if value == "x" else value for name, value in values.items()}
    with pytest.raises(ArtifactFailed, match="does not support arithmetic"):
        run_one(row, target="trn3", dst=x.like(), **given)


# tensor_tensor


@pytest.mark.parametrize("op", [op for op in FORMULAS if ALU[op].arity == 2])
def test_tensor_tensor_operators(op: str) -> None:
    x, y = tile(X), tile(Y)
    found = run_one(
        "tensor_tensor", engine=engine_of(op), target="trn3", dst=x.like(), data1=x, data2=y, op=op
    )
    same(found, stored(computed(op, X, Y), "float32"))


@pytest.mark.parametrize("op", [op for op in BITS if ALU[op].arity == 2])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "bool"])
def test_tensor_tensor_on_bits(op: str, dtype: str) -> None:
    kind = np.dtype("u1" if dtype == "bool" else dtype)
    a = (WORDS % 2).astype(kind) if dtype == "bool" else WORDS.astype(kind)
    b = (WORDS[::-1] % 40).astype(kind)
    x, y = tile(a, dtype=dtype), tile(b if dtype != "bool" else b % 2, dtype=dtype)
    found = run_one("tensor_tensor", dst=x.like(), data1=x, data2=y, op=op)
    bits = f"u{kind.itemsize}"
    taken = y.window(y.tensor.contents).view(bits)
    assert np.array_equal(found.view(bits), BITS[op](a.view(bits), taken).astype(bits))


def test_bits_are_cut_or_filled_with_zeros() -> None:
    x, y = tile(np.array([[-1, 5]], np.int8)), tile(np.array([[0x1FF, 0x104]], np.int32))
    found = run_one("tensor_tensor", dst=x.like(dtype="int32"), data1=x, data2=y, op="bitwise_or")
    assert found.tolist() == [[255, 5]]
    found = run_one("tensor_tensor", dst=x.like(), data1=y, data2=x, op="bitwise_and")
    assert found.tolist() == [[-1, 4]]


def test_gpsimd_computes_with_32_bit_integers() -> None:
    """Exact; sums and products wrap. The vector engine converts through float32."""
    a = np.array([[2**24 + 1, 2**31 - 1, -7, 2**30]], np.int32)
    b = np.array([[1, 1, 2, 6]], np.int32)
    x, y = tile(a), tile(b)
    given: dict[str, Any] = {"dst": x.like(), "data1": x, "data2": y}
    for op, expected in {
        "add": [2**24 + 2, -(2**31), -5, 2**30 + 6],
        "subtract": [2**24, 2**31 - 2, -9, 2**30 - 6],
        "multiply": [2**24 + 1, 2**31 - 1, -14, -(2**31)],
        "maximum": [2**24 + 1, 2**31 - 1, 2, 2**30],
        "less": [0, 0, 1, 0],
    }.items():
        assert run_one("tensor_tensor", op=op, **given).tolist() == [expected], op
    found = run_one("tensor_tensor", op="add", engine="vector", **given)
    assert found.tolist() == [[2**24, 2**31 - 1, -5, 2**30]]


def test_integers_have_the_sign_of_their_own_type() -> None:
    x, y = tile(np.array([[-1, 5]], np.int32)), tile(np.array([[3_000_000_000, 4]], np.uint32))
    for op, expected in {"greater": [0, 1], "maximum": [3_000_000_000, 5]}.items():
        given: dict[str, Any] = {"dst": x.like(dtype="uint32"), "data1": x, "data2": y, "op": op}
        assert run_one("tensor_tensor", engine="gpsimd", **given).tolist() == [expected]


# tensor_scalar


@pytest.mark.parametrize("op", [op for op in FORMULAS if ALU[op].arity == 1 or op == "subtract"])
@pytest.mark.parametrize("reverse", [False, True])
def test_tensor_scalar_operators(op: str, reverse: bool) -> None:
    """`reverse0` swaps operands; an operator with one operand has none to swap."""
    x = tile(np.abs(X) if op == "rsqrt" else X)
    operand = 2.5 if ALU[op].arity == 2 else None
    given = {"data": x, "op0": op, "operand0": operand, "reverse0": reverse}
    found = run_one("tensor_scalar", engine=engine_of(op), target="trn3", dst=x.like(), **given)
    expected = computed(op, x.window(x.tensor.contents), operand or 0)
    same(found, stored(-expected if operand and reverse else expected, "float32"))


def test_tensor_scalar_has_two_stages() -> None:
    x, y = tile(X), tile(X[:, :1])
    given: dict[str, Any] = {
        "data": x,
        "op0": "subtract",
        "operand0": y,
        "op1": "subtract",
        "operand1": 3.0,
    }
    first = single(X.astype(np.float64) - X[:, :1])
    for reverse0, reverse1 in ((False, False), (True, False), (False, True), (True, True)):
        flags: dict[str, Any] = {"reverse0": reverse0, "reverse1": reverse1}
        found = run_one("tensor_scalar", dst=x.like(), **given, **flags)
        expected = single((-first if reverse0 else first) - 3) * (-1 if reverse1 else 1)
        same(found, stored(expected, "float32"))


def test_tensor_scalar_on_the_scalar_engine() -> None:
    x = tile(X)
    given: dict[str, Any] = {"op0": "multiply", "operand0": 3.0, "op1": "add", "operand1": 0.1}
    found = run_one("tensor_scalar", engine="scalar", dst=x.like(dtype="bfloat16"), data=x, **given)
    expected = single(single(X.astype(np.float64) * 3) + np.float32(0.1))
    same(found, stored(expected, "bfloat16"))


@pytest.mark.parametrize("op", sorted(BITS))
@pytest.mark.parametrize("vector", [False, True])
def test_tensor_scalar_on_bits(op: str, vector: bool) -> None:
    """Two operators in sequence, with shifts reversed."""
    small = WORDS % 8
    x = tile(small.astype(np.int32))
    operand: Any = None if ALU[op].arity == 1 else tile(small[:, :1]) if vector else 6
    number = small[:, :1] if vector else np.uint32(6)
    given = {"op0": op, "operand0": operand, "op1": "bitwise_xor", "operand1": -1}
    for reverse in (False, True):
        found = run_one("tensor_scalar", dst=x.like(), data=x, reverse0=reverse, **given)
        swapped = reverse and ALU[op].arity == 2
        pair = (np.broadcast_to(number, small.shape), small) if swapped else (small, number)
        assert np.array_equal(found.view(np.uint32), ~BITS[op](*pair))


def test_tensor_scalar_computes_addresses_exactly() -> None:
    """32-bit integers throughout, with a vector (assumed; docs/fidelity.md)."""
    x, y = tile(WORDS.view(np.int32)), tile(WORDS.view(np.int32)[:, :1])
    given: dict[str, Any] = {"op0": "multiply", "operand0": 5, "op1": "add", "operand1": y}
    found = run_one("tensor_scalar", dst=x.like(), data=x, **given)
    assert np.array_equal(found.view(np.uint32), WORDS * np.uint32(5) + WORDS[:, :1])
    given |= {"op0": "add", "operand0": y, "op1": "less", "operand1": 0}  # wraps in between
    found = run_one("tensor_scalar", dst=x.like(), data=x, **given)
    assert np.array_equal(found, (WORDS + WORDS[:, :1]).view(np.int32) < 0)
    given = {"op0": "multiply", "operand0": 0.5, "op1": "add", "operand1": y}
    found = run_one("tensor_scalar", dst=x.like(), data=x, **given)
    half = WORDS.view(np.int32).astype(np.float32) * np.float32(0.5)
    same(found, stored(half + WORDS.view(np.int32)[:, :1].astype(np.float32), "int32"))


@pytest.mark.parametrize(
    ("number", "taken"),
    [
        (2**31 - 1, 2**31 - 1),
        (2**31, 2**31),  # unsigned
        (2**32 - 1, 2**32 - 1),
        (2**32, 0),
        (2**32 + 7, 7),
        (-(2**31), -(2**31)),
        (-(2**31) - 1, 2**31 - 1),
    ],
)
def test_integers_of_more_than_32_bits_wrap_around(number: int, taken: int) -> None:
    x, none = tile(np.array([[5]], np.int32)), tile(np.array([[0]], np.int32))
    given: dict[str, Any] = {"op0": "maximum", "operand0": number, "op1": "add", "operand1": none}
    found = run_one("tensor_scalar", dst=x.like(), data=x, **given)
    assert int(found[0, 0]) % 2**32 == max(5, taken) % 2**32


def test_scalar_tensor_tensor_takes_operators_with_one_input() -> None:
    x, y = tile(X), tile(Y)
    given: dict[str, Any] = {
        "op0": "abs",
        "operand0": 0.0,
        "reverse0": True,
        "op1": "subtract",
        "operand1": y,
    }
    found = run_one("scalar_tensor_tensor", dst=x.like(), data=x, reverse1=True, **given)
    same(found, stored(computed("subtract", Y, np.abs(X)), "float32"))


# tensor_reduce


@pytest.mark.parametrize("axis", [(1, 2, 3), (2, 3), (3,)])
@pytest.mark.parametrize("op", [op for op in FORMULAS if ALU[op].reducible])
def test_tensor_reduce_axes_and_operators(axis: tuple[int, ...], op: str) -> None:
    """Release notes of NKI 0.3.0: an axis is a dimension of the tile, not the last one."""
    whole = RNG.integers(-3, 4, (4, 2, 3, 5)).astype(np.float32)
    x = tile(whole)
    rows = whole.astype(np.float64).reshape(*whole.shape[: axis[0]], -1)
    first, rest = rows[..., 0], rows[..., 1:]
    expected = {
        "add": lambda: rows.sum(-1),
        "subtract": lambda: first - rest.sum(-1),
        "multiply": lambda: rows.prod(-1),
        "maximum": lambda: rows.max(-1),
        "minimum": lambda: rows.min(-1),
        "logical_and": lambda: (rows != 0).all(-1),
        "logical_or": lambda: (rows != 0).any(-1),
        "logical_xor": lambda: (rows != 0).sum(-1) % 2,
    }[op]()
    dst = tile((4, expected[0].size), dtype="float32")
    for negate, keepdims in ((False, False), (True, False), (False, True)):
        given: dict[str, Any] = {"axis": axis, "op": op, "negate": negate, "keepdims": keepdims}
        found = run_one("tensor_reduce", dst=dst, data=x, **given)
        same(found, stored(expected * (-1.0 if negate else 1.0), "float32"))


def test_an_axis_that_is_not_the_last_is_refused() -> None:
    x = tile(np.zeros((4, 2, 3), np.float32))
    with pytest.raises(ArtifactFailed, match="must name the last free dimensions"):
        run_one("tensor_reduce", dst=tile((4, 3)), data=x, op="add", axis=(1,))


@pytest.mark.parametrize("op", ["bitwise_and", "bitwise_or", "bitwise_xor"])
@pytest.mark.parametrize("dtype", ["uint8", "int32"])
def test_tensor_reduce_on_bits(op: str, dtype: str) -> None:
    elements = WORDS.astype(dtype).reshape(8, 3, 4)
    ufunc = getattr(np, op)
    dst = tile((8, 3), dtype=dtype)
    found = run_one("tensor_reduce", dst=dst, data=tile(elements), op=op, axis=(2,))
    assert np.array_equal(found, ufunc.reduce(elements, axis=2))


# tensor_tensor_scan


def test_tensor_tensor_scan_is_the_documented_recurrence() -> None:
    x, y, initial = tile(X), tile(Y), tile(X[:, 3:4])
    given: dict[str, Any] = {"data0": x, "data1": y, "op0": "multiply", "op1": "add"}
    for start, column in ((0.5, np.full(8, 0.5)), (initial, X[:, 3])):
        found = run_one("tensor_tensor_scan", dst=x.like(), initial=start, **given)
        state, expected = column.astype(np.float64), []
        for i in range(12):
            state = single(single(X[:, i].astype(np.float64) * state) + Y[:, i])
            expected.append(state)
        same(found, stored(np.stack(expected, 1), "float32"))


@pytest.mark.parametrize(
    ("reverse0", "reverse1", "expected"),
    [
        (False, False, [0.0, 0.0, -1.0]),  # (x - s) - y
        (True, False, [-2.0, -6.0, -13.0]),  # (s - x) - y
        (False, True, [0.0, 0.0, 1.0]),  # y - (x - s)
        (True, True, [2.0, 2.0, 5.0]),  # y - (s - x)
    ],
)
def test_tensor_tensor_scan_reverses(reverse0: bool, reverse1: bool, expected: list[float]) -> None:
    x, y = tile(np.array([[2.0, 2, 3]], np.float32)), tile(np.array([[1.0, 2, 4]], np.float32))
    given: dict[str, Any] = {"initial": 1.0, "op0": "subtract", "op1": "subtract"}
    flags: dict[str, Any] = {"reverse0": reverse0, "reverse1": reverse1}
    found = run_one("tensor_tensor_scan", dst=x.like(), data0=x, data1=y, **given, **flags)
    assert found.tolist() == [expected]


# bn_stats, bn_aggr, max8


def statistics(part: Array) -> list[Array]:
    wide = part.astype(np.float64)
    count = np.full(len(part), part.shape[1])
    return [count, wide.mean(1), wide.var(1) * part.shape[1]]


@pytest.mark.parametrize("size", [2, 7, 12])
def test_bn_stats_of_even_and_odd_elements(size: int) -> None:
    x = tile(X[:, :size])
    found = run_one("bn_stats", dst=tile((8, 6)), data=x)
    expected = np.stack(statistics(X[:, :size:2]) + statistics(X[:, 1:size:2]), 1)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_bn_aggr_gives_mean_and_variance_of_all() -> None:
    """Two bn_stats into one tile, over 5 and 12 elements."""
    parts = [X[:, :5], np.nan_to_num(Y, posinf=1.0)]
    stats = tile((8, 12))
    halves = [stats.over(offset=at, dims=((1, 6),)) for at in (0, 6)]
    result = tile((8, 2), dtype="bfloat16")
    outcome = run(
        [
            *(call("bn_stats", dst=d, data=tile(p)) for d, p in zip(halves, parts, strict=True)),
            call("bn_aggr", dst=result, data=stats),
        ]
    )
    every = np.concatenate(parts, 1).astype(np.float64)
    same(outcome[result], stored(np.stack((every.mean(1), every.var(1)), 1), "bfloat16"))


def test_statistics_may_be_written_over_their_data() -> None:
    x = tile(X[:, :6])
    same(run_one("bn_stats", dst=x, data=x), run_one("bn_stats", dst=x.like(), data=x))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32"])
def test_max8(dtype: str) -> None:
    values = RNG.integers(-9, 9, (8, 4, 5))
    x = tile(values.astype(np.float32), dtype=dtype)
    found = run_one("max8", dst=tile((8, 8), dtype=dtype), src=x)
    expected = -np.sort(-values.reshape(8, -1), axis=1)[:, :8]
    same(found, stored(expected, dtype))


# tensor_copy_predicated


def predicated(dst: Tile, src: Tile | float, flags: Tile, reverse: bool = False) -> Array:
    given: dict[str, Any] = {"src": src, "predicate": flags, "reverse_pred": reverse}
    return run_one("tensor_copy_predicated", dst=dst, **given)


def test_tensor_copy_predicated_takes_numbers_of_dst_s_type() -> None:
    flags = tile(np.array([[1, 0, 2, 255]], np.uint8))
    for dtype, number, expected in (
        ("bfloat16", 0.1, float(ml_dtypes.bfloat16(0.1))),
        ("int8", 300.0, 127),
        ("int32", -3.4e38, -(2**31)),
        ("float32", 7, 7.0),
    ):
        dst = tile(np.array([[1, 2, 3, 4]]).astype(np.float32), dtype=dtype)
        assert predicated(dst, number, flags).tolist() == [[expected, 2, expected, expected]]
        assert predicated(dst, number, flags, True).tolist() == [[1, expected, 3, 4]]


def test_tensor_copy_predicated_of_different_ranks() -> None:
    """Release notes of NKI 0.6.0: a 2-D source, with 4-D destination and predicate."""
    new = RNG.standard_normal((4, 24)).astype(np.float32)
    flags = RNG.integers(0, 2, (4, 2, 3, 4)).astype(np.uint32)
    dst = tile(np.zeros((4, 2, 3, 4), np.float32), steps=(40, 5, 1))
    found = predicated(dst, tile(new), tile(flags))
    assert np.array_equal(found, np.where(flags != 0, new.reshape(flags.shape), 0))


def test_logical_and_of_numbers() -> None:
    """Release notes of NKI 0.4.0: logical_and gives correct results."""
    x, y = (
        tile(np.array([[0, 2, -3, 0.5]], np.float32)),
        tile(np.array([[1, 4, 0, 0.5]], np.float32)),
    )
    found = run_one("tensor_tensor", dst=x.like(dtype="uint8"), data1=x, data2=y, op="logical_and")
    assert found.tolist() == [[0, 1, 0, 1]]


def test_long_rows_may_be_moved_over_themselves() -> None:
    """Functions process blocks of a row, but all elements are read before any is written."""
    values = np.arange(20_000, dtype=np.float32)[None] % 1000
    x = tile(values, room=8)
    found = run_one("activation", dst=x.over(offset=5), data=x, op="softplus")
    assert np.array_equal(found, run_one("activation", dst=x.like(), data=x, op="softplus"))


@pytest.mark.parametrize(
    ("kind", "op", "wanted"),
    [
        ("int32", "bitwise_and", lambda x: x & 6),
        ("int32", "add", lambda x: x + 6),
        ("float32", "multiply", lambda x: x * 6),
    ],
)
def test_shapes_that_no_common_refinement_has(kind: str, op: str, wanted: Any) -> None:
    """Three pairs of a tile become two triples of another: the elements in their order."""
    text = f"""
import nki, nki.isa as nisa, nki.language as nl
@nki.jit
def kernel(x):
    out = nl.ndarray((128, 10), dtype=x.dtype, buffer=nl.shared_hbm)
    pairs = nl.ndarray((128, 3, 4), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=pairs, src=x.reshape((128, 3, 4)))
    triples = nl.ndarray((128, 2, 5), dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(triples, 0)
    nisa.tensor_scalar(dst=triples[:, :, 0:3], data=pairs[:, :, 0:2], op0=nl.{op}, operand0=6)
    nisa.dma_copy(dst=out, src=triples.reshape((128, 10)))
    return out
"""
    x = np.arange(128 * 12).reshape(128, 12).astype(kind)
    made = nkic.compile(SourceFile("k.py", text), inputs={"x": x})
    found = np.asarray(nkic.run(made, {"x": x}).outputs["output_0"]).reshape(128, 2, 5)
    taken = x.reshape(128, 3, 4)[:, :, :2].reshape(128, 2, 3)
    np.testing.assert_array_equal(found[:, :, :3], wanted(taken))
    assert not found[:, :, 3:].any()


# ------------------------------------------------------------------------------------------------
# Test instructions that find 8 values in each partition, or move partitions.


def found_indices(row: Array, wanted: Array, downwards: bool) -> list[int]:
    """Pair equal values as documented, position by position, in plain Python."""
    places: list[int] = [-1] * 8
    left = {i: float(x) for i, x in enumerate(row)}
    for slot in reversed(range(8)) if downwards else range(8):
        place = next((i for i, x in left.items() if x == wanted[slot]), -1)
        places[slot] = place
        left.pop(place, None)
    return places


def many(dtype: str = "float32") -> tuple[Array, Array]:
    """Draw few different values, so that they repeat; some of the searched values do not occur."""
    rng = np.random.default_rng(0)
    data = rng.integers(0, 9, (40, 24)).astype(numpy_type(dtype))
    vals = rng.integers(0, 11, (40, 8)).astype(numpy_type(dtype))
    return data, vals


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int16"])
@pytest.mark.parametrize("index", ["uint32", "uint16"])
def test_find_index8_gives_successive_occurrences(dtype: str, index: str) -> None:
    data, vals = many(dtype)
    found = run_one(
        "nc_find_index8",
        dst=tile((40, 8), dtype=index),
        data=tile(data.reshape(40, 4, 6)),
        vals=tile(vals.reshape(40, 2, 4)),
    )
    expected = [found_indices(*pair, downwards=False) for pair in zip(data, vals, strict=True)]
    np.testing.assert_array_equal(found, np.array(expected).astype(index))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("imm", [-3.0, float("-inf")])
@pytest.mark.parametrize("in_place", [False, True])
def test_match_replace8(dtype: str, imm: float, in_place: bool) -> None:
    data, vals = many(dtype)
    x = tile(data)
    dst = x if in_place else tile((40, 24))
    places = tile((40, 8), dtype="uint32")
    outcome = run(
        [
            call(
                "nc_match_replace8",
                dst=dst,
                data=x,
                vals=tile(vals),
                imm=imm,
                dst_idx=places,
            )
        ]
    )
    pairs = zip(data, vals, strict=True)
    expected = np.array([found_indices(*pair, downwards=True) for pair in pairs])
    np.testing.assert_array_equal(outcome[places], expected.astype(np.uint32))
    replaced = data.astype(np.float32)
    for row, at in zip(replaced, expected, strict=True):
        row[at[at >= 0]] = imm
    np.testing.assert_array_equal(outcome[dst].astype(np.float32), replaced)


def test_the_published_example_of_equal_values() -> None:
    data = np.array([[1, 2, 3, 4, 8, 8, 8, 8, 8, 8, 8]], np.float32)
    vals, places = np.array([[3, 8, 8, 8, 8, 8, 8, 8]], np.float32), tile((1, 8), dtype="uint16")
    outcome = run(
        [
            call(
                "nc_match_replace8",
                dst=tile(data.shape),
                data=tile(data),
                vals=tile(vals),
                imm=0.0,
                dst_idx=places,
            )
        ]
    )
    assert outcome[places].tolist() == [[2, 10, 9, 8, 7, 6, 5, 4]]
    up = run_one("nc_find_index8", dst=places.like(), data=tile(data), vals=tile(vals))
    assert up.tolist() == [[2, 4, 5, 6, 7, 8, 9, 10]]


def test_match_replace8_without_indices() -> None:
    data, vals = many()
    found = run_one(
        "nc_match_replace8", dst=tile((40, 24)), data=tile(data), vals=tile(vals), imm=0.5
    )
    assert ((found == data) | (found == 0.5)).all() and (found == 0.5).sum() > 100


MASKS = {
    "turned": [*range(1, 32), 0],
    "first": [0] * 32,
    "some": [255, 5, 255, 31] * 8,
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8"])
@pytest.mark.parametrize("in_place", [False, True])
def test_shuffle_moves_partitions_within_their_quadrant(
    mask: str, dtype: str, in_place: bool
) -> None:
    rng = np.random.default_rng(1)
    before, data = (rng.integers(0, 200, (64, 6)).astype(numpy_type(dtype)) for _ in range(2))
    src = tile(data)
    dst = src if in_place else tile(before, buffer="psum", start=64)
    found = run_one("nc_stream_shuffle", dst=dst, src=src, shuffle_mask=tuple(MASKS[mask]))
    expected = (data if in_place else before).copy()
    for partition in range(64):
        entry = MASKS[mask][partition % 32]
        if entry != 255:
            expected[partition] = data[partition // 32 * 32 + entry]
    np.testing.assert_array_equal(found, expected)


def test_shuffle_broadcasts_one_partition() -> None:
    data = np.arange(6, dtype=np.float32)[None]
    found = run_one(
        "nc_stream_shuffle",
        dst=tile((20, 2, 3), start=96),
        src=tile(data),
        shuffle_mask=(0,) * 32,
    )
    np.testing.assert_array_equal(found.reshape(20, 6), np.repeat(data, 20, axis=0))


def test_shuffle_moves_bits() -> None:
    data = np.array([[0x7F800001, 0xFFC12345]], np.uint32)
    src = tile(data).over(dtype="float32")
    found = run_one("nc_stream_shuffle", dst=tile((32, 2)), src=src, shuffle_mask=(0,) * 32)
    assert (found.view(np.uint32) == data).all()
