"""Test `report_bounds` against brute force: the same arithmetic in float64 where that is exact
enough.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies
from numpy.typing import NDArray

from nkic.machine.operators import ORDERS
from nkic.simulate import Result, RunOptions, simulate
from tests.harness.language import simulated

Array = NDArray[Any]
HEAD = """\
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel({names}):
    {loads}
    {body}
    out = nl.ndarray(result.shape, dtype=result.dtype, buffer=nl.shared_hbm)
    nl.store(out, result)
    return out
"""


def source(body: str, names: tuple[str, ...]) -> str:
    loads = "\n    ".join(f"{name} = nl.load({name})" for name in names)
    lines = "\n    ".join(line.strip() for line in body.strip().splitlines())
    return HEAD.format(names=", ".join(names), loads=loads, body=lines)


def drawn(shape: tuple[int, ...], seed: int, kind: Any = np.float32) -> Array:
    rng = np.random.default_rng(seed)
    return (rng.standard_normal(shape) * np.exp(rng.uniform(-3, 2, shape))).astype(kind)


def bounded(
    body: str, arrays: dict[str, Array], target: str = "trn2"
) -> list[tuple[Array, Array, Result]]:
    """Return the kernel's results in every order, its bounds, and the whole result."""
    compiled, _ = simulated(source(body, tuple(arrays)), arrays, target)
    kind = compiled.executable.tensors[compiled.executable.outputs[0].tensor].dtype.name
    found = []
    for order in ORDERS:
        options = RunOptions(accumulate=order, report_bounds=True)
        raw = {n: a.view(np.uint16) if a.dtype.itemsize == 2 else a for n, a in arrays.items()}
        result = simulate(compiled.executable, raw, options)
        values = result.outputs["output_0"]
        if kind == "bfloat16":
            values = values.view(ml_dtypes.bfloat16)
        assert result.bounds is not None
        found.append((np.asarray(values, np.float64), result.bounds["output_0"], result))
    return found


SOFTMAX = """
    top = nl.max(x, axis=1)
    e = nl.exp(nl.subtract(x, top))
    result = nl.multiply(e, nl.reciprocal(nl.sum(e, axis=1)))
"""
NORM = """
    mean = nl.mean(nl.square(x), axis=1)
    result = nl.multiply(x, nl.rsqrt(nl.add(mean, 1e-3)))
"""
PRODUCT = """
    p = nl.ndarray((64, 48), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=p, stationary=x, moving=y, accumulate=False)
    nisa.nc_matmul(dst=p, stationary=x, moving=y, accumulate=True)
    result = nl.copy(p)
"""
REGISTERS = """
    result = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    e = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation(dst=e, op=nl.tanh, data=x, scale=0.7, reduce_op=nl.add,
                    reduce_cmd=nisa.reduce_cmd.reset_reduce)
    nisa.activation(dst=e, op=nl.tanh, data=x, reduce_op=nl.add, reduce_res=result,
                    reduce_cmd=nisa.reduce_cmd.reduce)
"""
NARROW = """
    half = nl.copy(x, dtype=nl.bfloat16)
    result = nl.add(nl.multiply(half, half, dtype=nl.float32), y, dtype=nl.bfloat16)
"""
SCAN = """
    result = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_tensor_scan(dst=result, data0=nl.sigmoid(x), data1=x, initial=0.5,
                            op0=nl.multiply, op1=nl.add)
"""
STATISTICS = """
    stats = nl.ndarray((128, 6), dtype=nl.float32, buffer=nl.sbuf)
    nisa.bn_stats(dst=stats, data=x)
    result = nl.ndarray((128, 2), dtype=nl.float32, buffer=nl.sbuf)
    nisa.bn_aggr(dst=result, data=stats)
"""
TRANSPOSED = """
    p = nl.ndarray((64, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_transpose(dst=p, data=nl.multiply(x, 1.1))
    result = nl.copy(p)
"""
FOLDED = """
    p = nl.ndarray((32, 1), dtype=nl.float32, buffer=nl.psum)
    row = nl.multiply(x, 1.1)[0:1, :]
    nisa.nc_transpose(dst=p, data=row.reshape((1, 4, 16))[:, :, 0:8])
    result = nl.copy(p)
"""


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    quotients: Array = e / e.sum(axis=1, keepdims=True)
    return quotients


def scan(x: Array) -> Array:
    carry, rows = np.full(len(x), 0.5), []
    for column in x.T:
        carry = carry / (1 + np.exp(-column)) + column
        rows.append(carry)
    return np.stack(rows, axis=1)


SCALE = float(np.float32(0.7))
CASES: dict[str, tuple[str, Callable[..., Array]]] = {
    "softmax": (SOFTMAX, softmax),
    "norm": (
        NORM,
        lambda x: x / np.sqrt((x * x).mean(axis=1, keepdims=True) + float(np.float32(1e-3))),
    ),
    "registers": (
        REGISTERS,
        lambda x: (np.tanh(x * SCALE) + np.tanh(x)).sum(axis=1, keepdims=True),
    ),
    "narrow": (NARROW, lambda x, y: x * x + y),
    "scan": (SCAN, scan),
    "statistics": (STATISTICS, lambda x: np.stack([x.mean(axis=1), x.var(axis=1)], axis=1)),
    "transposed": (TRANSPOSED, lambda x: x.T * float(np.float32(1.1))),
    "folded": (
        FOLDED,
        lambda x: x[0].reshape(4, 16)[:, :8].reshape(32, 1) * float(np.float32(1.1)),
    ),
    "difference": (
        "result = nl.sum(nl.subtract(x, y), axis=1)",
        lambda x, y: (x - y).sum(axis=1, keepdims=True),
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", range(3))
def test_no_element_is_further_off_than_its_bound(name: str, seed: int) -> None:
    body, reference = CASES[name]
    count = reference.__code__.co_argcount
    arrays = {n: drawn((128, 64), 10 * seed + i) for i, n in enumerate(("x", "y")[:count])}
    exact = reference(*(a.astype(np.float64) for a in arrays.values()))
    for found, bound, result in bounded(body, arrays):
        off = np.abs(found - exact)
        assert not result.uncovered
        assert np.isfinite(bound).all()
        assert (off <= bound).all(), (off / bound).max()
        assert (bound < 300 * off.max()).mean() > 0.5, "a bound that says something"


@pytest.mark.parametrize("kind", [np.float32, ml_dtypes.bfloat16, np.float16])
def test_products(kind: Any) -> None:
    arrays = {"x": drawn((128, 64), 1, kind), "y": drawn((128, 48), 2, kind)}
    wide = {n: a.astype(np.float64) for n, a in arrays.items()}
    exact = 2 * wide["x"].T @ wide["y"]
    for found, bound, _ in bounded(PRODUCT, arrays):
        off = np.abs(found - exact)
        assert (off <= bound).all()
        assert bound.max() < 1e-3 * np.abs(exact).max()


def test_what_is_exact_has_no_bound() -> None:
    x = drawn((128, 64), 3)
    body = "result = nl.copy(nl.maximum(nl.abs(x), nl.greater(x, 0.5)))"
    for found, bound, _ in bounded(body, {"x": x}):
        assert not bound.any()
        assert found.shape == bound.shape


def test_a_comparison_within_the_error_is_undecided() -> None:
    """(1 + 2^-23) (1 - 2^-23) is 1 - 2^-46, which float32 rounds to 1."""
    x = np.ones((128, 1), np.float32)
    x[0, 0] += 2.0**-23
    x[1, 0] += 1
    body = "result = nl.greater_equal(nl.multiply(x, nl.subtract(2.0, x)), 1.0, dtype=nl.float32)"
    (_, bound, _), *_ = bounded(body, {"x": x})
    assert bound[0, 0] == 1, "not decided"
    assert bound[1, 0] == 0, "0 is less than 1 whatever was rounded"


def test_overflow_is_unbounded_and_cancellation_shows() -> None:
    x = np.zeros((128, 4), np.float32)
    x[0, :2] = (3e38, 3e38)
    x[1, :3] = (2.0**30, 1, -(2.0**30))
    x[2, :] = (1, 2, 3, 4)
    x[3, :] = (3e38, -3e38, 3e38, -3e38)
    (_, bound, _), *_ = bounded("result = nl.sum(x, axis=1)", {"x": x})
    assert bound[0, 0] == np.inf
    assert bound[1, 0] > 100, "the sum is 1"
    assert bound[2, 0] < 1e-5
    assert bound[3, 0] == np.inf, "another order overflows"


def test_rows_that_are_not_covered_are_unbounded() -> None:
    body = """
    y = nl.multiply(x, 1.1)
    result = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    mask = nl.greater(x, 0.0, dtype=nl.uint8)
    nisa.select_reduce(dst=result, predicate=mask, on_true=y, on_false=0.0)
    """
    (_, bound, result), *_ = bounded(body, {"x": drawn((128, 4), 1)})
    assert np.isinf(bound).all()
    assert [row for row, _ in result.uncovered] == ["select_reduce"]


def test_values_and_time_are_those_of_a_run_without() -> None:
    arrays = {"x": drawn((128, 64), 5)}
    compiled, plain = simulated(source(SOFTMAX, ("x",)), arrays)
    other = simulate(compiled.executable, arrays, RunOptions(report_bounds=True))
    assert plain.bounds is None
    assert other.outputs["output_0"].tobytes() == plain.outputs["output_0"].tobytes()
    assert other.cycles == plain.cycles


STEPS = (
    "x = nl.multiply(x, {c})",
    "x = nl.add(x, y)",
    "x = nl.subtract({c}, x)",
    "x = nl.multiply(x, y)",
    "x = nl.maximum(x, y)",
    "x = nl.tanh(x)",
    "x = nl.square(x)",
    "x = nl.sigmoid(x, dtype=nl.float32)",
    "x = nl.abs(x)",
    "y = nl.add(y, x)",
)
EXACT: tuple[Callable[[Array, Array, float], tuple[Array, Array]], ...] = (
    lambda x, y, c: (x * c, y),
    lambda x, y, c: (x + y, y),
    lambda x, y, c: (c - x, y),
    lambda x, y, c: (x * y, y),
    lambda x, y, c: (np.maximum(x, y), y),
    lambda x, y, c: (np.tanh(x), y),
    lambda x, y, c: (x * x, y),
    lambda x, y, c: (1 / (1 + np.exp(-x)), y),
    lambda x, y, c: (np.abs(x), y),
    lambda x, y, c: (x, y + x),
)


@settings(max_examples=25)
@given(
    strategies.lists(strategies.integers(0, len(STEPS) - 1), min_size=1, max_size=8),
    strategies.integers(0, 1000),
)
def test_random_chains(steps: list[int], seed: int) -> None:
    arrays = {"x": drawn((128, 8), seed), "y": drawn((128, 8), seed + 1)}
    c = float(np.float32(0.3 + seed / 700))
    body = "\n".join(STEPS[i].format(c=c) for i in steps)
    x, y = (a.astype(np.float64) for a in arrays.values())
    for i in steps:
        x, y = EXACT[i](x, y, c)
    (found, bound, _), *_ = bounded(f"{body}\nresult = nl.copy(x)", arrays)
    with np.errstate(invalid="ignore"):
        off = np.abs(found - x)
    # To first order: products of two errors are left out.
    assert (off <= bound * (1 + 1e-3) + 1e-30)[np.isfinite(off)].all()
