"""NKI0706: a partial sum overflows float32, and exact accumulation hides it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nkic.base.diagnostics import Level
from nkic.simulate import Result, RunOptions, simulate
from tests.harness.language import simulated
from tests.unit.simulate.test_accumulate import BODIES, HEAD

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
    (found,) = run(BODIES[name], swinging(3)).remarks
    assert (found.code.slug, found.level) == ("hidden-overflow", Level.REMARK)
    assert f"{name}: 3 sums overflow float32 in between" in found.message
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
