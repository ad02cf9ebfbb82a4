"""Test the instructions added in NeuronCore-v4, against the documentation in float64."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.harness.instruction import Call, Tile, call, run, tile
from tests.harness.reference import single, stored

Array = NDArray[Any]


def values(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def empty(**more: Any) -> Tile:
    return tile((8, 1), **more)


def rows(array: Array) -> Array:
    return array.astype(np.float64).reshape(len(array), -1)


# exponential


@pytest.mark.parametrize("vector", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int16"])
def test_exponential_of_the_difference(vector: bool, dtype: str) -> None:
    x, most = 3 * values(8, 3, 4), values(8, 1, seed=1)
    dst = tile((8, 12), dtype=dtype)
    outcome = run(
        [
            call(
                "exponential",
                dst=dst,
                src=tile(x),
                max_value=tile(most) if vector else 0.75,
            )
        ],
        target="trn3",
    )
    expected = np.exp(single(rows(x) - (most if vector else 0.75)))
    if dtype == "int16":
        assert np.abs(outcome[dst] - np.rint(expected)).max() <= 1
    else:
        found, wanted = (a.astype(np.float64) for a in (outcome[dst], stored(expected, dtype)))
        np.testing.assert_allclose(found, wanted, rtol=1e-6 if dtype == "float32" else 1e-2)


def exponential(x: Array, **more: Any) -> Call:
    return call("exponential", **{"dst": tile(x.shape), "src": tile(x), **more})


def test_exponentials_are_summed_in_the_shared_accumulators() -> None:
    x, y, start = values(8, 5), values(8, 7, seed=1), np.abs(values(8, 1, seed=2))
    both, loaded, number, shared = empty(), empty(dtype="bfloat16"), empty(), empty()
    outcome = run(
        [
            exponential(x, reduce_cmd="reset_reduce"),
            exponential(y, reduce_cmd="reduce", reduce_res=both),
            exponential(x, reduce_cmd="load_reduce", reduce_init=tile(start), reduce_res=loaded),
            exponential(x, reduce_cmd="load_reduce", reduce_init=2.5, reduce_res=number),
            call(
                "tensor_scalar_reduce",
                dst=tile((8, 5)),
                data=tile(x),
                op0="multiply",
                operand0=1.0,
                reduce_op="maximum",
                reduce_cmd="reduce",
                reduce_res=shared,
            ),
        ],
        target="trn3",
    )
    x_sum, y_sum = (np.exp(rows(a)).sum(axis=1, keepdims=True) for a in (x, y))
    np.testing.assert_allclose(outcome[both], x_sum + y_sum, rtol=1e-6)
    np.testing.assert_allclose(outcome[loaded].astype(float), x_sum + start, rtol=1e-2)
    np.testing.assert_allclose(outcome[number], x_sum + 2.5, rtol=1e-6)
    np.testing.assert_allclose(outcome[shared], x_sum + 2.5, rtol=1e-6)


def test_exponential_with_idle_disturbs_the_accumulators() -> None:
    total = empty()
    outcome = run(
        [
            exponential(values(8, 5), reduce_cmd="reset_reduce"),
            exponential(values(8, 5)),
            exponential(values(8, 5), reduce_cmd="reduce", reduce_res=total),
        ],
        target="trn3",
    )
    assert np.isnan(outcome[total]).all()


# activate2

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "multiply": np.multiply,
    "add": np.add,
    "subtract": np.subtract,
    "bypass": lambda a, b: a,
}


def activated(x: Array, op0: str, op1: str, **more: Any) -> Call:
    more = {"op": "copy", "imm0": 2.5, "imm1": -0.75, **more}
    return call("activate2", **{"dst": tile(x.shape), "data": tile(x), **more}, op0=op0, op1=op1)


@pytest.mark.parametrize("vectors", [False, True])
@pytest.mark.parametrize("reversed_", [False, True])
@pytest.mark.parametrize(
    ("op0", "op1"),
    [
        ("multiply", "add"),
        ("multiply", "subtract"),
        ("multiply", "bypass"),
        ("add", "bypass"),
        ("subtract", "bypass"),
        ("bypass", "bypass"),
    ],
)
def test_two_stages_before_the_function(op0: str, op1: str, reversed_: bool, vectors: bool) -> None:
    x, imm = values(8, 6), [values(8, 1, seed=1), values(8, 1, seed=2)]
    if not vectors:
        imm = [np.full((8, 1), number, np.float32) for number in (2.5, -0.75)]
    reverse = [reversed_ and op != "bypass" for op in (op0, op1)]
    one = activated(
        x,
        op0,
        op1,
        **{f"imm{i}": tile(imm[i]) if vectors else float(imm[i][0, 0]) for i in (0, 1)},
        **{f"reverse{i}": reverse[i] for i in (0, 1)},
    )
    result = x
    for op, operand, swap in zip((op0, op1), imm, reverse, strict=True):
        result = OPERATORS[op](operand, result) if swap else OPERATORS[op](result, operand)
    np.testing.assert_array_equal(run([one], target="trn3")[one.values["dst"]], result)


@pytest.mark.parametrize("vector", [False, True])
def test_prelu_has_a_parameter(vector: bool) -> None:
    x, slope = values(8, 6), np.abs(values(8, 1, seed=1))
    one = activated(x, "bypass", "bypass", op="prelu", relu_param=tile(slope) if vector else 0.25)
    expected = np.where(x > 0, x, x * (slope if vector else np.float32(0.25)))
    np.testing.assert_array_equal(run([one], target="trn3")[one.values["dst"]], expected)


def test_the_function_is_applied_last() -> None:
    x = values(8, 6)
    one = activated(x, "multiply", "add", op="tanh")
    found = run([one], target="trn3")[one.values["dst"]]
    np.testing.assert_allclose(found, np.tanh(2.5 * rows(x) - 0.75), rtol=1e-6, atol=1e-7)


def furthest(array: Array, axis: int, keepdims: bool) -> Array:
    place = np.abs(array).argmax(axis=axis, keepdims=True)
    return np.take_along_axis(array, place, axis)


def nearest(array: Array, axis: int, keepdims: bool) -> Array:
    return np.take_along_axis(array, np.abs(array).argmin(axis=axis, keepdims=True), axis)


@pytest.mark.parametrize(
    ("op", "fold"),
    [
        ("add", np.sum),
        ("maximum", np.max),
        ("minimum", np.min),
        ("abs_max", furthest),
        ("abs_min", nearest),
    ],
)
def test_results_are_reduced_in_the_reduce_registers(op: str, fold: Callable[..., Any]) -> None:
    x, y, first, both = values(8, 5), values(8, 7, seed=1), empty(), empty()
    outcome = run(
        [
            activated(
                *(x, "bypass", "bypass"),
                reduce_op=op,
                reduce_cmd="reset_reduce",
                reduce_res=first,
            ),
            activated(x, "bypass", "bypass"),
            activated(
                *(y, "bypass", "bypass"),
                reduce_op=op,
                reduce_cmd="reduce",
                reduce_res=both,
            ),
        ],
        target="trn3",
    )
    for found, array in ((first, x), (both, np.hstack([x, y]))):
        expected = fold(array.astype(np.float64), axis=1, keepdims=True)
        np.testing.assert_allclose(outcome[found], expected, rtol=1e-6, atol=1e-6)


def test_reset_reduces_nothing() -> None:
    least = empty()
    outcome = run(
        [
            activated(
                *(values(8, 5), "bypass", "bypass"),
                reduce_op="minimum",
                reduce_cmd="reset",
                reduce_res=least,
            )
        ],
        target="trn3",
    )
    assert (outcome[least] == np.inf).all()
