"""Sums by BLAS in float64 are used only where their order does not matter."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nkic.machine.operators import SummationOrder
from nkic.simulate.numerics import quiet, reduction
from nkic.simulate.numerics.elementwise import FUNCTIONS
from nkic.simulate.numerics.reduction import OPERATORS, fold, reduce

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


# ------------------------------------------------------------------------------------------------
# Sums by BLAS equal sequential additions to the bit, or are not used.


def chain_drawn(kept: int, elements: int) -> NDArray[np.float32]:
    draw = np.random.default_rng(kept * elements)
    spread = draw.integers(-30, 30, (kept, elements))
    return np.ldexp(draw.standard_normal((kept, elements), dtype=np.float32), spread)


def in_turn(rows: NDArray[Any]) -> NDArray[np.float32]:
    return np.asarray([np.add.accumulate(row)[-1] for row in rows], np.float32)


@pytest.mark.parametrize("kept", [1, 5, 32, 100, 128, 200])
@pytest.mark.parametrize("elements", [256, 257, 384, 1000, 2048])
def test_sums_are_first_to_last(kept: int, elements: int) -> None:
    if not reduction._slab():
        pytest.skip("this machine's BLAS adds in another order")
    rows = chain_drawn(kept, elements)
    found, wanted = np.empty(kept, np.float32), in_turn(rows)
    assert reduction.sum_rows_in_turn(rows, found)
    assert found.tobytes() == wanted.tobytes()
    exact = np.asarray(rows.astype(np.float64).sum(1), np.float32)
    assert kept < 32 or wanted.tobytes() != exact.tobytes()


@pytest.mark.parametrize(
    "value", [-0.0, np.inf, -np.inf, np.nan, np.uint32(0xFFC12345).view(np.float32)]
)
def test_zeros_and_what_is_no_number_are_left_to_numpy(value: float) -> None:
    rows = np.full((128, 300), 1, np.float32)
    rows[7] = value
    found, wanted = np.empty(128, np.float32), np.empty(128, np.float32)
    with quiet():
        assert not reduction.sum_rows_in_turn(rows, found)
        fold(np.add, rows.copy(), found, "float32")
        np.add.reduce(np.ascontiguousarray(rows.T), axis=0, out=wanted)
    assert found.tobytes() == wanted.tobytes()


def test_a_blas_that_adds_otherwise_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, found = chain_drawn(64, 512), np.empty(64, np.float32)
    monkeypatch.setattr(reduction, "_slab", lambda: 0)
    assert not reduction.sum_rows_in_turn(rows, found)
    fold(np.add, rows, found, "float32")
    assert found.tobytes() == in_turn(rows).tobytes()


def test_an_order_that_differs_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def backwards(rows: Any, out: Any, size: int) -> None:
        np.copyto(out, in_turn(rows[:, ::-1]))

    monkeypatch.setattr(reduction, "_chain", backwards)
    assert not any(reduction._agrees(128, 512, size) for size in reduction.SLABS)


@pytest.mark.parametrize("size", reduction.SLABS)
def test_every_size_of_slab_adds_up_the_same(size: int) -> None:
    if not reduction._agrees(128, 512, size):
        pytest.skip("this machine's BLAS adds in another order")
    for kept, elements in ((128, 1024), (40, 700), (32, 300)):
        rows, found = chain_drawn(kept, elements), np.empty(kept, np.float32)
        reduction._chain(rows, found, size)
        assert found.tobytes() == in_turn(rows).tobytes()


def test_few_numbers_are_not_worth_it() -> None:
    assert not reduction.sum_rows_in_turn(
        chain_drawn(128, reduction.MIN_CHAIN - 1), np.empty(128, np.float32)
    )


# ------------------------------------------------------------------------------------------------
# The buffer of NumPy's ufuncs changes the time of an operation, and none of its bits.

ORDERS: tuple[SummationOrder, ...] = ("exact", "float32", "pairwise")
SIZES = (16, 512, 8192)


@contextmanager
def buffer(size: int) -> Iterator[None]:
    with quiet():
        np.setbufsize(size)
        yield


def values(rows: int, columns: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    draw = np.random.default_rng(rows * columns)
    numbers = draw.standard_normal((rows, columns), dtype=np.float32)
    return np.ldexp(numbers, draw.integers(-12, 6, numbers.shape))


def test_quiet_puts_the_buffer_and_the_warnings_back() -> None:
    with np.errstate(divide="raise"):
        before = np.getbufsize()
        with quiet():
            assert np.getbufsize() < before
            assert np.geterr()["divide"] == "call"  # which only sets a flag
        assert np.getbufsize() == before
        assert np.geterr()["divide"] == "raise"


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_functions_do_not_depend_on_the_buffer(name: str) -> None:
    x, found = values(3, 2500), []
    for size in SIZES:
        out = np.empty_like(x)
        with buffer(size):
            FUNCTIONS[name](x, out, np.array([[0.5], [1], [2]], np.float32))
        found.append(out.tobytes())
    assert found == found[:1] * len(SIZES)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("op", sorted(OPERATORS))
def test_reductions_do_not_depend_on_the_buffer(op: str, order: SummationOrder) -> None:
    x, found = values(5, 9000), []
    for size in SIZES:
        out = np.empty(5, np.float32)
        with buffer(size):
            reduce(op, x, out, 1, order)
        found.append(out.tobytes())
    assert found == found[:1] * len(SIZES)
