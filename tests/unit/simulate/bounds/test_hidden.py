"""NKI0706 and NKI0711: partial sums overflow float32 or cancel in it, which exact accumulation
hides.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nkic.base.diagnostics import Level
from nkic.simulate import Result, RunOptions, simulate
from tests.harness.language import simulated
from tests.unit.simulate.test_psum import BODIES, HEAD

F = np.float32
PRODUCT = """
    p = nl.ndarray((1, 48), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=p, stationary=x[:, 0:1], moving=x)
    result = nl.copy(p)"""


def run(body: str, x: NDArray[np.float32], target: str = "trn2", **more: Any) -> Result:
    compiled, _ = simulated(HEAD.format(body=body), {"x": x}, target)
    options = replace(RunOptions(), **more)
    return simulate(compiled.executable, {"x": x}, options)


def hidden(result: Result) -> list[str]:
    """Return the remarks, without those on infinity that the result shows."""
    return [one.message for one in result.remarks if one.code.slug != "becomes-not-finite"]


def swinging(rows: int) -> NDArray[np.float32]:
    """Return an array with 3e38 + 3e38 - 3e38 - 3e38 in this number of rows."""
    x = np.ones((128, 48), F)
    x[:rows, :4] = (3e38, 3e38, -3e38, -3e38)
    return x


@pytest.mark.parametrize(
    "name", ["tensor_reduce", "activation", "activation_reduce", "tensor_scalar_reduce"]
)
def test_sums_that_overflow_on_the_way(name: str) -> None:
    for rows in (2, 3):
        (found,) = run(BODIES[name], swinging(rows)).remarks
        assert (found.code.slug, found.level) == ("hidden-overflow", Level.REMARK)
        told = f"{name}: {rows} sums overflow float32 in between, but are finite here"
        assert told in found.message
        assert found.primary is not None, "it has a place"


def test_over_partitions_and_in_products() -> None:
    x = np.zeros((128, 48), F)
    x[:4, 7] = (3e38, 3e38, -3e38, -3e38)
    (found,) = run(BODIES["tensor_partition_reduce"], x).remarks
    assert "1 sum overflows float32 in between, but is 0 here" in found.message
    x[:, 0] = 1
    (found,) = run(PRODUCT, x).remarks
    assert found.message.startswith("nc_matmul: 1 sum overflows")


@pytest.mark.parametrize("more", [{"accumulate": "float32"}, {"accumulate": "pairwise"}])
def test_nothing_is_hidden_in_float32(more: dict[str, Any]) -> None:
    assert hidden(run(BODIES["tensor_reduce"], swinging(3), **more)) == []


def test_in_pairs_another_sum_overflows() -> None:
    """From left to right 2e38 + 2e38 does; (2e38 + 0) + (2e38 - 2e38) does not."""
    x = np.zeros((128, 48), F)
    x[:3, :4] = (2e38, 0, 2e38, -2e38)
    assert len(hidden(run(BODIES["tensor_reduce"], x))) == 1
    assert hidden(run(BODIES["tensor_reduce"], x, accumulate="pairwise")) == []


def test_as_measured_on_trn1_nothing_is_hidden() -> None:
    assert hidden(run(BODIES["tensor_reduce"], swinging(3), "trn1")) == []
    assert hidden(run(BODIES["tensor_reduce"], swinging(3), "trn1", accumulate="exact"))


def test_large_numbers_alone_are_no_reason() -> None:
    """Nor is an overflow that is visible in the result, nor an infinity in the input."""
    x = np.ones((128, 48), F)
    x[0, :2] = (3e38, -3e38)
    x[1, :2] = (3e38, 3e38)
    x[2, 0] = np.inf
    x[3, 0] = np.nan
    assert hidden(run(BODIES["tensor_reduce"], x)) == []


def multiplied(left: Any, right: Any, parts: int = 1, **more: Any) -> list[str]:
    """Return the remarks on left.T @ right, added up in `parts` products."""
    k, m, n = len(left) // parts, left.shape[1], right.shape[1]
    body = f"""
    p = nl.ndarray(({m}, {n}), dtype=nl.float32, buffer=nl.psum)
    w = nl.ndarray(({k}, {m + n}), dtype=nl.float32, buffer=nl.sbuf)
    for i in range({parts}):
        w = nl.load(x[i * {k} : (i + 1) * {k}])
        nisa.nc_matmul(dst=p, stationary=w[:, 0:{m}], moving=w[:, {m}:], accumulate=i > 0)
    result = nl.copy(p)"""
    a = np.concatenate([left, right], axis=1).astype(F)
    text = HEAD.replace("    x = nl.load(x)", "").format(body=body)
    compiled, _ = simulated(text, {"x": a}, "trn2")
    options = replace(RunOptions(), **more)
    return hidden(simulate(compiled.executable, {"x": a}, options))


def numbers(*shape: int) -> Any:
    return np.random.default_rng(0).standard_normal(shape).astype(F)


def cancelling(rows: int, columns: int) -> Any:
    """Return ones whose sums are 126 once 1e8 and -1e8 are added, in any column."""
    x = np.ones((rows, columns), F)
    x[0], x[-1] = 1e8, -1e8
    return x


ONES, RANDOM = np.ones((128, 64), F), numbers(128, 64)
ONE_OF_MANY = np.concatenate([numbers(128, 40), cancelling(128, 1), numbers(128, 23)], axis=1)


@pytest.mark.parametrize(
    ("left", "right", "count"),
    [
        (ONES[:, :1], cancelling(128, 1), 1),
        (ONES, cancelling(128, 64), 64 * 64),
        (ONE_OF_MANY, ONES, 64),
        (ONES, ONE_OF_MANY, 64),
        (ONE_OF_MANY, ONES[:, :1], 1),
    ],
    ids=["one", "all", "row", "column", "vector"],
)
def test_terms_of_a_product_that_cancel(left: Any, right: Any, count: int) -> None:
    (said,) = multiplied(left, right)
    sums = "1 sum is" if count == 1 else f"{count:,} sums are"
    assert said.startswith(f"nc_matmul: {sums} what remains") and "is 126 here" in said
    assert said.endswith("changes it by 126")
    assert multiplied(left, right, accumulate="float32") == []


def test_one_sum_may_be_small_by_chance() -> None:
    """One of 100,000 sums of random numbers is; this one is the 60th product of one vector."""
    random = np.random.default_rng
    left, right = (random(seed).standard_normal((128, n)) for seed, n in ((99, 1), (4, 32768)))
    small = np.abs((left.T @ right)[0]).argmin()
    assert multiplied(left, right[:, small : small + 1]) == []
    assert multiplied(left, np.roll(right[:, small - 64 : small + 64], 1, axis=1)) == []


def test_products_that_cancel_in_psum() -> None:
    x = cancelling(256, 8)
    x[[0, -1]] *= 100
    (said,) = multiplied(np.ones((256, 8), F), x, 2)
    assert said.startswith("nc_matmul: 64 sums") and said.endswith("changes it by 127")


ONE_HOT = np.eye(128, 64, dtype=F)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (RANDOM, RANDOM),
        (RANDOM, np.abs(numbers(128, 512))),
        (ONE_HOT, ONE_HOT[::-1]),
        (ONE_HOT * F(1e8), cancelling(128, 64)),
        (np.zeros((128, 64), F), cancelling(128, 64)),
        (RANDOM * np.geomspace(1e-20, 1e15, 64, dtype=F), RANDOM),
        (np.tril(np.ones((128, 128), F)), RANDOM),
        (np.where(np.arange(128)[:, None] < 64, RANDOM, 0), np.roll(RANDOM, 64, axis=0)),
    ],
    ids=["random", "positive", "apart", "chosen", "zeros", "scaled", "running", "halves"],
)
def test_products_that_do_not_cancel(left: Any, right: Any) -> None:
    assert multiplied(left, right) == []


@pytest.mark.parametrize("op", ["add", "average"])
@pytest.mark.parametrize(("rest", "count"), [(4.8e-5, 48), (4.8e-3, 0)])
def test_what_float32_loses_little_by_little(op: str, rest: float, count: int) -> None:
    """126 numbers that are each less than half of the last bit of 1."""
    x = np.full((128, 48), 3e-8, F)
    x[0], x[-1] = 1, F(rest) - 1
    name = "tensor_partition_reduce"
    found = hidden(run(BODIES[name].replace("nl.add", f"nl.{op}"), x))
    assert [one.split(" sums")[0] for one in found] == [f"{name}: {count}"] * (count > 0)


def test_products_that_lose_little_by_little_are_several() -> None:
    """Each loses a fifteenth, which a single one may by chance."""
    right = np.full((128, 8), 3e-8, F)
    right[0], right[-1] = 1, F(4.8e-5) - 1
    (said,) = multiplied(ONES[:, :8], right)
    assert said.startswith("nc_matmul: 64 sums are what remains")
    (said,) = multiplied(ONES[:, :1], right)
    assert said.startswith("nc_matmul: 8 sums are what remains")
    assert multiplied(ONES[:, :1], right[:, :1]) == []


@pytest.mark.parametrize("scale", [2.0**-60, 1.0, 2.0**60])
def test_a_product_overflows_whatever_the_scale_of_its_factors(scale: float) -> None:
    left = np.full((128, 1), scale, F)
    right = np.zeros((128, 8), F)
    right[:4, 5] = np.array((3e38, 3e38, -3e38, -3e38), F) * F(min(1.0, 1 / scale))
    left[:4] *= F(max(1.0, 1 / scale)) if scale < 1 else 1
    found = multiplied(left, right)
    assert [one.split(" in between")[0] for one in found] == ["nc_matmul: 1 sum overflows float32"]


@pytest.mark.parametrize("scale", [2.0**-40, 2.0**-6, 2.0**6, 2.0**40])
@pytest.mark.parametrize("swapped", [False, True])
def test_cancelling_terms_are_found_whatever_the_scale_of_a_factor(
    scale: float, swapped: bool
) -> None:
    """Powers of two are exact; the neighbours of the row or column that cancels are large."""
    right = np.concatenate([np.full((128, 1), 1e8, F), ONE_OF_MANY], axis=1)
    factors = (right, ONES * F(scale)) if swapped else (ONES * F(scale), right)
    (said,) = multiplied(*factors)
    assert said.startswith(f"nc_matmul: {ONES.shape[1]} sum"), "the random ones are none"
    assert f"is {126 * scale:.8g} here" in said and said.endswith(f"by {126 * scale:.8g}")


def test_sums_overflow_on_the_way_by_the_product_of_both_factors() -> None:
    """No element of either is beyond 3e20."""
    left, right = (np.zeros((128, 4), F) for _ in "lr")
    left[:4, 2] = 1e18
    right[:4, 1] = (3e20, 3e20, -3e20, -3e20)
    (said,) = multiplied(left, right)
    assert said.startswith("nc_matmul: 1 sum overflows float32 in between, but is 0 here")


def test_terms_of_a_reduction_that_cancel() -> None:
    """Means and sums of the numbers of each row; a sum that is small by chance is none."""
    x = np.ascontiguousarray(cancelling(48, 128).T)
    for name in ("tensor_reduce", "activation_reduce"):
        (said,) = hidden(run(BODIES[name], x))
        assert said.startswith(f"{name}: 128 sums") and "is 46 here" in said
        assert said.endswith("changes it by 46"), "all that is left"
        assert hidden(run(BODIES[name], x, accumulate="float32")) == []
        assert hidden(run(BODIES[name], numbers(128, 48))) == []
