"""The buffer of NumPy's ufuncs changes the time of an operation, and none of its bits."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest

from nkic.machine.operators import SummationOrder
from nkic.simulate.numerics import quiet
from nkic.simulate.numerics.elementwise import FUNCTIONS
from nkic.simulate.numerics.reduction import OPERATORS, reduce

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
