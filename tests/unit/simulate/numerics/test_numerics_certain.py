"""Sums by BLAS in float64 are used only where their order does not matter."""

import numpy as np
import pytest
from numpy.typing import NDArray

from nkic.simulate.numerics import quiet, reduction
from nkic.simulate.numerics.reduction import reduce

Floats = NDArray[np.float32]


def squares(values: Floats) -> float:
    flat = values.reshape(-1)
    return float(np.dot(flat, flat))


def in_order(values: Floats) -> Floats:
    """Return the sums of the rows as `reduction.py` defines them."""
    return np.asarray(np.add.reduce(values.astype(np.float64), axis=1), np.float32)


def drawn(kept: int, length: int, spread: int) -> Floats:
    draw = np.random.default_rng(kept * length + spread)
    exponent = draw.integers(-spread, spread + 1, (kept, length))
    return np.ldexp(draw.standard_normal((kept, length), dtype=np.float32), exponent)


@pytest.mark.parametrize("spread", [0, 6, 30])
@pytest.mark.parametrize(("kept", "length"), [(64, 512), (128, 1024), (33, 2000), (128, 8192)])
def test_sums_are_those_in_the_defined_order(kept: int, length: int, spread: int) -> None:
    values, found = drawn(kept, length, spread), np.empty(kept, np.float32)
    assert reduction.may_sum(values, kept)
    reduce("add", values, found, squares=squares(values))
    assert found.tobytes() == in_order(values).tobytes()


def test_most_positive_rows_are_certain() -> None:
    values, found = np.abs(drawn(128, 1024, 2)), np.empty(128, np.float32)
    rest = reduction.sum_rows(values, found, squares(values))
    kept = np.ones(128, np.bool_) if rest is None else ~rest
    assert np.count_nonzero(kept) > 120
    assert found[kept].tobytes() == in_order(values)[kept].tobytes()


def test_several_axes_and_gaps_are_added_up() -> None:
    whole, found = drawn(128, 2 * 1024, 3).reshape(128, 2, 32, 32), np.empty((128, 2), np.float32)
    values = whole.transpose(0, 1, 3, 2)
    reduce("add", values, found, keep=2, squares=squares(values))
    wanted = in_order(np.ascontiguousarray(values).reshape(256, 1024)).reshape(128, 2)
    assert found.tobytes() == wanted.tobytes()


def test_a_sum_between_two_numbers_is_not_certain() -> None:
    values, found = np.zeros((128, 512), np.float32), np.empty(128, np.float32)
    values[:, 0] = 1
    values[5, 1], values[6, 1:3] = 2.0**-24, (2.0**-24, 2.0**-60)  # a tie, and just above it
    rest = reduction.sum_rows(values, found, squares(values))
    assert rest is not None
    assert list(np.flatnonzero(rest)) == [5, 6]
    reduce("add", values, found, squares=squares(values))
    assert found.tobytes() == in_order(values).tobytes()


def test_the_sign_of_zero_is_that_of_the_defined_order() -> None:
    values, found = np.zeros((128, 512), np.float32), np.empty(128, np.float32)
    values[:64] = -0.0
    values[64, ::2], values[64, 1::2] = 1, -1
    reduce("add", values, found, squares=squares(values))
    assert found.tobytes() == in_order(values).tobytes()


@pytest.mark.parametrize("value", [np.inf, np.nan, 3e38, 1e-45, 2.0**64])
def test_extreme_numbers_are_added_in_order(value: float) -> None:
    values, found = drawn(128, 512, 0), np.empty(128, np.float32)
    values[7], values[9, ::2] = value, value
    with quiet():
        reduce("add", values, found, squares=squares(values))
        wanted = in_order(values)
    assert found.tobytes() == wanted.tobytes()


def test_the_bound_holds_where_cancellation_is_worst(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums of numbers that cancel differ between orders, and a bound of zero would not notice."""
    draw = np.random.default_rng(3)
    half = draw.standard_normal((128, 512)).astype(np.float32) * np.float32(2.0**30)
    small = draw.standard_normal((128, 1024)).astype(np.float32)
    values, found = np.concatenate((half, small, -half), axis=1), np.empty(128, np.float32)
    reduce("add", values, found, squares=squares(values))
    assert found.tobytes() == in_order(values).tobytes()
    monkeypatch.setattr(reduction, "sqrt", lambda number: 0.0)
    reduce("add", values, found, squares=squares(values))
    assert found.tobytes() != in_order(values).tobytes()
