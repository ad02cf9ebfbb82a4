"""Test the scalar engine's rows: the function, scale and bias, and the reduce registers."""

from math import erf, pi
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nkic.machine.operators import ACTIVATIONS
from tests.harness.instruction import Call, Tile, call, run, run_one, tile
from tests.harness.reference import same, single, stored

Array = NDArray[Any]
RNG = np.random.default_rng(11)
X = RNG.standard_normal((8, 12)).astype(np.float32)
WIDE = X.astype(np.float64)
BELL = np.exp(-(WIDE**2) / 2) / np.sqrt(2 * pi)
NORMAL = np.vectorize(lambda v: (1 + erf(v / np.sqrt(2))) / 2)(WIDE)


def gate(values: Array) -> Array:
    return 1 / (1 + np.exp(-values))


def slope(scale: float) -> Array:
    """Return the derivative of x gate(scale x)."""
    found: Array = gate(scale * WIDE) * (1 + scale * WIDE * (1 - gate(scale * WIDE)))
    return found


TANH = np.sqrt(2 / pi) * (WIDE + 0.044715 * WIDE**3)
EXPECTED = {
    "copy": WIDE,
    "square": WIDE**2,
    "abs": np.abs(WIDE),
    "sign": np.sign(WIDE),
    "relu": np.maximum(WIDE, 0),
    "exp": np.exp(WIDE),
    "log": np.log(np.abs(WIDE)),
    "sqrt": np.sqrt(np.abs(WIDE)),
    "rsqrt": 1 / np.sqrt(np.abs(WIDE)),
    "reciprocal": 1 / WIDE,
    "sin": np.sin(WIDE),
    "arctan": np.arctan(WIDE),
    "tanh": np.tanh(WIDE),
    "sigmoid": gate(WIDE),
    "softplus": np.log1p(np.exp(WIDE)),
    "mish": WIDE * np.tanh(np.log1p(np.exp(WIDE))),
    "silu": WIDE * gate(WIDE),
    "silu_dx": slope(1.0),
    "erf": np.vectorize(erf)(WIDE),
    "erf_dx": 2 / np.sqrt(pi) * np.exp(-(WIDE**2)),
    "gelu": WIDE * NORMAL,
    "gelu_dx": NORMAL + WIDE * BELL,
    "gelu_apprx_tanh": WIDE * (1 + np.tanh(TANH)) / 2,
    "gelu_apprx_sigmoid": WIDE * gate(1.702 * WIDE),
    "gelu_apprx_sigmoid_dx": slope(1.702),
}
POSITIVE = ("log", "sqrt", "rsqrt")


def test_every_function_is_tried() -> None:
    assert {*EXPECTED, "prelu"} == set(ACTIVATIONS)


@pytest.mark.parametrize("op", sorted(EXPECTED))
def test_activation_functions(op: str) -> None:
    x = tile(np.abs(X) if op in POSITIVE else X)
    found = run_one("activation", dst=x.like(), data=x, op=op)
    np.testing.assert_allclose(found, EXPECTED[op], rtol=3e-7, atol=1e-12)
    narrow = run_one("activation", dst=x.like(dtype="bfloat16"), data=x, op=op)
    same(narrow, stored(found, "bfloat16"))


@pytest.mark.parametrize("scale", [1.0, -2.5, "vector"])
@pytest.mark.parametrize("bias", [None, 0.0, 0.75, "float32", "bfloat16", "int32"])
def test_scale_comes_before_bias(scale: Any, bias: Any) -> None:
    numbers = RNG.integers(-9, 9, (8, 1)).astype(np.float32) + (0.5 if bias != "int32" else 0)
    given: dict[str, Any] = {"scale": scale, "bias": bias}
    if scale == "vector":
        given["scale"] = tile(X[:, :1], buffer="psum")
    if isinstance(bias, str):
        given["bias"] = tile(numbers, dtype=bias)
    found = run_one("activation", dst=tile((8, 12)), data=tile(X), op="copy", **given)
    factor = X[:, :1] if scale == "vector" else np.float32(scale)
    added = numbers if isinstance(bias, str) else np.float32(bias or 0)
    same(found, stored(single(single(WIDE * factor) + added), "float32"))


def test_no_bias_is_not_a_bias_of_zero() -> None:
    """-0 + 0 is 0."""
    x = tile(np.array([[-0.0]], np.float32))
    for bias, expected in ((None, -np.inf), (0.0, np.inf)):
        found = run_one("activation", dst=x.like(), data=x, op="reciprocal", bias=bias)
        assert found.tolist() == [[expected]]


# The reduce registers


def sums(*rows: Array) -> Array:
    """Return the registers after adding the sum of each instruction: in float32, one after the
    other.
    """
    total = np.zeros(len(rows[0]), np.float32)
    for row in rows:
        total += row.astype(np.float64).reshape(len(row), -1).sum(1).astype(np.float32)
    return total[:, None]


def reducing(data: Tile, command: str, taker: Tile | None = None) -> Call:
    more: dict[str, Any] = {"reduce_op": "add", "reduce_cmd": command, "reduce_res": taker}
    return call("activation", dst=data.like(), data=data, op="square", **more)


def test_commands_reset_reduce_and_idle() -> None:
    """Registers keep their content from instruction to instruction."""
    a, b, c = (tile(RNG.integers(-9, 9, (8, 6)).astype(np.float32)) for _ in range(3))
    squares = [t.window(t.tensor.contents) ** 2 for t in (a, b, c)]
    takers = [tile((8, 1)) for _ in range(6)]
    outcome = run(
        [
            reducing(a, "reset_reduce"),
            reducing(b, "reduce", takers[0]),
            reducing(c, "idle", takers[1]),
            reducing(c, "reduce", takers[2]),
            reducing(a, "reset", takers[3]),
            reducing(b, "reduce", takers[4]),
            reducing(c, "reset_reduce", takers[5]),
        ]
    )
    nothing = np.zeros((8, 1), np.float32)
    expected = [
        *(sums(*squares[:2]), sums(*squares[:2]), sums(*squares)),
        *(nothing, sums(squares[1]), sums(squares[2])),
    ]
    for taker, total in zip(takers, expected, strict=True):
        assert np.array_equal(outcome[taker], total)


def test_registers_are_zero_at_first_and_belong_to_partitions() -> None:
    low, high = tile(X[:4]), tile(X[:4], start=32)
    takers = [tile((4, 1)), tile((4, 1), start=32), tile((4, 1))]
    outcome = run(
        [
            reducing(low, "reduce", takers[0]),
            reducing(high, "reset_reduce", takers[1]),
            reducing(low, "idle", takers[2]),
        ]
    )
    squares = single(WIDE[:4] ** 2)
    assert np.array_equal(outcome[takers[0]], sums(squares))
    assert np.array_equal(outcome[takers[1]], sums(squares))
    assert np.array_equal(outcome[takers[2]], outcome[takers[0]])


def test_activation_reduce_starts_from_zero_and_shares_the_registers() -> None:
    x, y = tile(X), tile(X[:, :5])
    takers = [tile((8, 1)), tile((8, 1), dtype="bfloat16"), tile((8, 1), buffer="psum")]
    given: dict[str, Any] = {"op": "relu", "reduce_op": "add", "scale": 2.0, "bias": 0.25}
    outcome = run(
        [
            reducing(y, "reset_reduce"),
            call("activation_reduce", dst=x.like(), data=x, reduce_res=takers[0], **given),
            reducing(y, "reduce", takers[1]),
            call("activation_reduce", dst=x.like(), data=x, reduce_res=None, **given),
            reducing(y, "idle", takers[2]),
        ]
    )
    activated = np.maximum(single(single(WIDE * 2) + 0.25), 0)
    squares = single(WIDE[:, :5] ** 2)
    assert np.array_equal(outcome[takers[0]], sums(activated))
    same(outcome[takers[1]], stored(sums(activated, squares), "bfloat16"))
    assert np.array_equal(outcome[takers[2]], sums(activated))


def test_the_sum_is_of_results_before_they_are_rounded() -> None:
    """Over all free dimensions. (Assumed; docs/fidelity.md.)"""
    x, taker = tile(X.reshape(8, 3, 4)), tile((8, 1))
    outcome = run(
        [
            call(
                "activation_reduce",
                dst=x.like(dtype="int8"),
                data=x,
                op="copy",
                reduce_op="add",
                reduce_res=taker,
            )
        ]
    )
    assert np.array_equal(outcome[taker], sums(X))


@pytest.mark.parametrize("row", ["activation", "activation_reduce"])
def test_a_result_that_is_laid_over_dst_keeps_the_sum(row: str) -> None:
    """Release notes of NKI 0.6.0: `reduce_res` that aliases `dst` is not clobbered."""
    x = tile(X)
    dst = x.like()
    taker = dst.over(offset=3, dims=((1, 1),))
    command = {"reduce_cmd": "reset_reduce"} if row == "activation" else {}
    given: dict[str, Any] = {"op": "copy", "reduce_op": "add", "reduce_res": taker, **command}
    outcome = run([call(row, dst=dst, data=x, **given)])
    expected = X.copy()
    expected[:, 3:4] = sums(X)
    assert np.array_equal(outcome[dst], expected)


def test_in_place_over_data_and_bias() -> None:
    x = tile(X)
    bias = x.over(dims=((1, 1),))
    found = run_one("activation", dst=x, data=x, op="copy", scale=2.0, bias=bias)
    same(found, stored(single(WIDE * 2 + WIDE[:, :1]), "float32"))
