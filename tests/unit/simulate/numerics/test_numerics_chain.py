"""Sums by BLAS equal sequential additions to the bit, or are not used."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nkic.simulate.numerics import quiet, reduction
from nkic.simulate.numerics.reduction import fold


def drawn(kept: int, elements: int) -> NDArray[np.float32]:
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
    rows = drawn(kept, elements)
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
    rows, found = drawn(64, 512), np.empty(64, np.float32)
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
        rows, found = drawn(kept, elements), np.empty(kept, np.float32)
        reduction._chain(rows, found, size)
        assert found.tobytes() == in_turn(rows).tobytes()


def test_few_numbers_are_not_worth_it() -> None:
    assert not reduction.sum_rows_in_turn(
        drawn(128, reduction.MIN_CHAIN - 1), np.empty(128, np.float32)
    )
