"""Test instructions that also reduce, against the documentation in float64."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.harness.instruction import Call, Tile, call, run, run_one, tile
from tests.harness.reference import stored

Array = NDArray[Any]
LOWEST = float(np.finfo(np.float32).min)


def values(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def column(seed: int = 0, partitions: int = 8) -> Tile:
    return tile(values(partitions, 1, seed=seed))


def empty(partitions: int = 8, **more: Any) -> Tile:
    return tile((partitions, 1), **more)


# tensor_scalar_reduce


def scalar_reduce(x: Tile, **changes: Any) -> Call:
    more = {"op0": "multiply", "operand0": 2.0, "reduce_op": "add", **changes}
    return call("tensor_scalar_reduce", **{"dst": x.like(), "data": x, **more})


@pytest.mark.parametrize(
    ("op", "fold"),
    [("add", np.sum), ("multiply", np.prod), ("maximum", np.max), ("minimum", np.min)],
)
def test_results_are_reduced_over_all_free_dimensions(op: str, fold: Callable[..., Any]) -> None:
    x, dst, total = values(8, 3, 5), tile((8, 15), dtype="bfloat16"), empty()
    outcome = run(
        [
            call(
                "tensor_scalar_reduce",
                dst=dst,
                data=tile(x),
                op0="add",
                operand0=0.25,
                reduce_op=op,
                reduce_res=total,
            )
        ]
    )
    result = (x + np.float32(0.25)).astype(np.float64).reshape(8, 15)
    assert np.array_equal(outcome[dst], stored(result, "bfloat16"))
    np.testing.assert_array_equal(
        outcome[total], fold(result, axis=1, keepdims=True).astype(np.float32)
    )


def test_the_operand_may_be_a_vector_and_the_operator_unary() -> None:
    x, v = values(8, 4), column(1)
    found = run([c := scalar_reduce(tile(x), operand0=v, op0="subtract")])[c.values["dst"]]
    np.testing.assert_array_equal(found, x - values(8, 1, seed=1))
    found = run([c := scalar_reduce(tile(x), operand0=None, op0="abs")])[c.values["dst"]]
    np.testing.assert_array_equal(found, np.abs(x))


def test_reduce_goes_on_and_load_reduce_starts_from_a_value() -> None:
    x, y, start = values(8, 6), values(8, 9, seed=1), values(8, 1, seed=2)
    both, loaded, number = empty(), empty(), empty()
    outcome = run(
        [
            scalar_reduce(tile(x), operand0=1.0),
            scalar_reduce(tile(y), operand0=1.0, reduce_cmd="reduce", reduce_res=both),
            scalar_reduce(
                tile(x),
                operand0=1.0,
                reduce_cmd="load_reduce",
                reduce_init=tile(start),
                reduce_res=loaded,
            ),
            scalar_reduce(tile(x), reduce_cmd="load_reduce", reduce_init=5.0, reduce_res=number),
        ]
    )

    def total(array: Array) -> Array:
        sums: Array = array.astype(np.float64).sum(axis=1, keepdims=True)
        return sums

    np.testing.assert_allclose(outcome[both], total(x) + total(y), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(outcome[loaded], total(x) + start, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(outcome[number], 2 * total(x) + 5, rtol=1e-6, atol=1e-6)


def test_negating_leaves_the_accumulators_as_they_are() -> None:
    x = np.abs(values(8, 6)) + 1
    minus, plain = empty(), empty()
    outcome = run(
        [
            scalar_reduce(tile(x), reduce_op="maximum", reduce_res=minus, reduce_res_negate=True),
            scalar_reduce(tile(x / 2), reduce_op="maximum", reduce_cmd="reduce", reduce_res=plain),
        ]
    )
    np.testing.assert_array_equal(outcome[minus], -2 * x.max(axis=1, keepdims=True))
    np.testing.assert_array_equal(outcome[plain], 2 * x.max(axis=1, keepdims=True))


@pytest.mark.parametrize("room", range(8))
def test_negating_in_any_layout(room: int) -> None:
    """NumPy 2.4's `negative` takes the wrong elements if both arrays have a stride of 16 bytes."""
    x, minus, least = values(8, 6), empty(room=room), tile((8, 1), room=room)
    reducing = call("tensor_reduce", dst=least, op="minimum", data=tile(x), axis=(1,), negate=True)
    outcome = run([scalar_reduce(tile(x), reduce_res=minus, reduce_res_negate=True), reducing])
    total = -2 * x.astype(np.float64).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(outcome[minus], total, rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(outcome[least], -x.min(axis=1, keepdims=True))


def test_accumulators_belong_to_partitions() -> None:
    low, high = tile(values(32, 4)), tile(values(32, 4, seed=1), start=32)
    sums = [tile((32, 1)), tile((32, 1), start=32)]
    outcome = run(
        [
            scalar_reduce(low, operand0=1.0),
            call(
                "tensor_scalar_reduce",
                dst=tile((32, 4), start=32),
                data=high,
                op0="add",
                operand0=0.0,
                reduce_op="add",
                reduce_res=sums[1],
            ),
            scalar_reduce(low, operand0=0.0, reduce_cmd="reduce", reduce_res=sums[0]),
        ]
    )
    for found, seed in zip(sums, (0, 1), strict=True):
        expected = values(32, 4, seed=seed).astype(np.float64).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(outcome[found], expected, rtol=1e-6, atol=1e-6)


def test_accumulators_that_nothing_has_set_are_not_numbers() -> None:
    total = empty()
    outcome = run([scalar_reduce(tile(values(8, 4)), reduce_cmd="reduce", reduce_res=total)])
    assert np.isnan(outcome[total]).all()


# tensor_scalar_cumulative

FOLDS: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
}
STARTS = {"add": 0, "subtract": 0, "multiply": 1, "maximum": -np.inf, "minimum": np.inf}


def cumulated(terms: Array, op: str, start: Any) -> Array:
    """Run the pseudocode of the documentation, with a carry in float32."""
    out = np.empty_like(terms)
    register = np.broadcast_to(np.float32(start), terms[:, 0].shape)
    for i in range(terms.shape[1]):
        register = FOLDS[op](terms[:, i], register)
        out[:, i] = register
    return out


@pytest.mark.parametrize("op", FOLDS)
@pytest.mark.parametrize("imm0", [0.5, None], ids=["number", "vector"])
def test_cumulative(op: str, imm0: float | None) -> None:
    x, v = values(8, 7), values(8, 1, seed=3)
    found = run_one(
        "tensor_scalar_cumulative",
        dst=tile((8, 7)),
        src=tile(x),
        op0="subtract",
        op1=op,
        imm0=tile(v) if imm0 is None else imm0,
    )
    terms = x - (v if imm0 is None else np.float32(imm0))
    np.testing.assert_array_equal(found, cumulated(terms, op, STARTS[op]))


@pytest.mark.parametrize("imm1", [-1.5, None], ids=["number", "vector"])
def test_cumulative_goes_on_from_what_was_loaded(imm1: float | None) -> None:
    x, y, v = values(8, 5), values(8, 6, seed=1), values(8, 1, seed=2)
    one, two = tile((8, 5), dtype="float16"), tile((8, 6))
    common: dict[str, Any] = {"op0": "add", "op1": "add", "imm0": 0.0}
    outcome = run(
        [
            call(
                "tensor_scalar_cumulative",
                dst=one,
                src=tile(x),
                reduce_cmd="load_reduce",
                **common,
                imm1=tile(v) if imm1 is None else imm1,
            ),
            call(
                "tensor_scalar_cumulative",
                dst=two,
                src=tile(y),
                reduce_cmd="reduce",
                **common,
            ),
        ]
    )
    start = v[:, 0] if imm1 is None else imm1
    expected = cumulated(np.hstack([x, y]), "add", start)
    np.testing.assert_array_equal(outcome[one], stored(expected[:, :5], "float16"))
    np.testing.assert_array_equal(outcome[two], expected[:, 5:])


def test_cumulative_does_not_load_without_load_reduce() -> None:
    x = values(8, 5)
    common: dict[str, Any] = {"op0": "add", "op1": "add", "imm0": 0.0}
    found = run_one("tensor_scalar_cumulative", dst=tile((8, 5)), src=tile(x), imm1=7.0, **common)
    np.testing.assert_array_equal(found, cumulated(x, "add", 0))


# select_reduce


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("vector", [False, True])
def test_select_takes_one_of_two_and_the_greatest(reverse: bool, vector: bool) -> None:
    x, otherwise = values(8, 3, 4), values(8, 1, seed=1)
    flags = np.random.default_rng(2).integers(-1, 2, (8, 12)).astype(np.int8)
    dst, greatest = tile((8, 12), dtype="bfloat16"), empty(dtype="float16")
    outcome = run(
        [
            call(
                "select_reduce",
                dst=dst,
                predicate=tile(flags),
                on_true=tile(x),
                on_false=tile(otherwise) if vector else -0.75,
                reduce_res=greatest,
                reduce_cmd="reset_reduce",
                reverse_pred=reverse,
            )
        ]
    )
    result = np.where(
        (flags != 0) != reverse, x.reshape(8, 12), otherwise if vector else np.float32(-0.75)
    )
    np.testing.assert_array_equal(outcome[dst], stored(result, "bfloat16"))
    expected = stored(result.max(axis=1, keepdims=True), "float16")
    np.testing.assert_array_equal(outcome[greatest], expected)


def selecting(x: Array, command: str, **more: Any) -> Call:
    ones = tile(np.ones(x.shape, np.uint8))
    more = {"on_false": 0.0, "reduce_cmd": command, **more}
    return call("select_reduce", dst=tile(x.shape), predicate=ones, on_true=tile(x), **more)


def test_select_and_range_select_share_the_accumulators() -> None:
    x, y, greatest = values(8, 4), values(8, 4, seed=1), empty()
    outcome = run(
        [selecting(x, "reset_reduce"), ranged(y, reduce_cmd="reduce", reduce_res=greatest)]
    )
    expected = np.hstack([x, y]).max(axis=1, keepdims=True)
    np.testing.assert_array_equal(outcome[greatest], expected)


def test_idle_disturbs_the_accumulators() -> None:
    x, greatest = values(8, 4), empty()
    outcome = run(
        [
            selecting(x, "reset_reduce"),
            selecting(x, "idle"),
            selecting(x, "reduce", reduce_res=greatest, reduce_op="maximum"),
        ]
    )
    assert np.isnan(outcome[greatest]).all()
    assert [one.code.slug for one in outcome.result.remarks] == ["stale-accumulator"]


# range_select


def ranged(x: Array, low: float = 0, high: float = 1e6, **more: Any) -> Call:
    bounds = {
        f"bound{i}": tile(np.full((len(x), 1), bound, np.float32))
        for i, bound in enumerate((low, high))
    }
    more = {"comp_op0": "greater_equal", "comp_op1": "less", **bounds, **more}
    return call("range_select", dst=tile(x.shape), on_true_tile=tile(x), **more)


COMPARE = {
    "equal": np.equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
}


@pytest.mark.parametrize("op0", COMPARE)
@pytest.mark.parametrize("op1", COMPARE)
def test_both_comparisons_must_hold(op0: str, op1: str) -> None:
    x = values(8, 2, 5)
    low = np.arange(8, dtype=np.float32)[:, None] + 3
    high = low[::-1] + 2
    dst, greatest = tile((8, 10)), empty()
    outcome = run(
        [
            call(
                "range_select",
                dst=dst,
                on_true_tile=tile(x),
                comp_op0=op0,
                comp_op1=op1,
                bound0=tile(low),
                bound1=tile(high.copy()),
                range_start=2,
                reduce_res=greatest,
                on_false_value=-3.4028235e38,
            )
        ]
    )
    index = 2 + np.arange(10)
    mask = COMPARE[op0](index, low) & COMPARE[op1](index, high)
    result = np.where(mask, x.reshape(8, 10), LOWEST)
    np.testing.assert_array_equal(outcome[dst], result)
    np.testing.assert_array_equal(outcome[greatest], result.max(axis=1, keepdims=True))


def test_the_fill_is_infinite_in_a_narrow_type() -> None:
    x = values(8, 4)
    dst, greatest = tile((8, 4), dtype="bfloat16"), empty()
    one = ranged(x, low=9, reduce_res=greatest)
    outcome = run([one._replace(values={**one.values, "dst": dst})])
    assert (outcome[dst].astype(np.float32) == -np.inf).all()
    assert (outcome[greatest] == LOWEST).all()


def test_reset_forgets_and_adds_nothing() -> None:
    x, greatest, after = values(8, 4), empty(), empty()
    outcome = run(
        [
            ranged(x),
            ranged(x, reduce_cmd="reset", reduce_res=greatest, reduce_op="maximum"),
            ranged(x - 5, reduce_cmd="reduce", reduce_res=after),
        ]
    )
    assert (outcome[greatest] == -np.inf).all()
    np.testing.assert_array_equal(outcome[after], (x - 5).max(axis=1, keepdims=True))
