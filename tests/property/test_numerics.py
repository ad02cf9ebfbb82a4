"""Rounding, products and recurrences on random arrays."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from nkic.machine import codecs, dtypes
from nkic.machine.dtypes import DTYPES, DType
from nkic.simulate.numerics import quiet
from nkic.simulate.numerics.elementwise import ARITHMETIC
from nkic.simulate.numerics.matmul import matmul
from nkic.simulate.numerics.reduction import cumulative, tensor_tensor_scan

Floats = NDArray[np.float32]

UNPACKED = st.sampled_from([d for d in DTYPES.values() if d.kind != "packed"])
FLOATS = st.sampled_from(
    [dtypes.BFLOAT16, dtypes.FLOAT16, dtypes.FLOAT8_E4M3, dtypes.FLOAT8_E4M3FN, dtypes.FLOAT8_E5M2]
)
# Booleans have no order; the other two turn numbers into NaN.
UNORDERED = (dtypes.BOOL, dtypes.FLOAT8_E8M0FNU, dtypes.FLOAT8_E4M3FN)
ORDERED = UNPACKED.filter(lambda dtype: dtype not in UNORDERED)
BITS = hnp.arrays(np.uint32, hnp.array_shapes(max_dims=3, max_side=9), fill=st.nothing())
BINARY = [
    *("add", "subtract", "multiply", "maximum", "minimum", "abs_max"),
    *("equal", "not_equal", "less", "greater_equal", "logical_xor", "bypass"),
]


def words(values: Floats) -> list[int]:
    """Return the bits, with every NaN alike."""
    return np.where(np.isnan(values), np.uint32(0), values.view(np.uint32)).ravel().tolist()


@given(BITS, FLOATS)
@settings(max_examples=200)
def test_encode_decode_and_round_agree_with_the_oracle(bits: NDArray[np.uint32], d: DType) -> None:
    values = bits.view(np.float32)
    oracle = getattr(ml_dtypes, d.name, np.float16)
    with np.errstate(all="ignore"):
        expected = values.astype(oracle).astype(np.float32)
    assert words(codecs.round_to_grid(values, d, np.empty_like(values))) == words(expected)
    assert words(codecs.decode(codecs.encode(values, d), d)) == words(expected)


@given(BITS, UNPACKED)
@settings(max_examples=200)
def test_rounding_is_storing_and_loading(bits: NDArray[np.uint32], dtype: DType) -> None:
    values = bits.view(np.float32).copy()
    stored = codecs.decode(codecs.encode(values, dtype), dtype)
    codecs.round_to_grid(values, dtype, values)
    assert words(values) == words(stored)
    again = codecs.round_to_grid(values, dtype, np.empty_like(values))
    assert words(again) == words(values)
    if dtype.is_float:
        assert words(codecs.decode(codecs.encode(values, dtype, on_grid=True), dtype)) == words(
            values
        )


@given(st.lists(st.floats(width=32, allow_nan=False), min_size=2, max_size=40), ORDERED)
def test_rounding_keeps_the_order(numbers: list[float], dtype: DType) -> None:
    values = np.sort(np.array(numbers, np.float32))
    found = codecs.round_to_grid(values, dtype, np.empty_like(values))
    assert (found[1:] >= found[:-1]).all()


@given(st.integers(1, 300), st.integers(1, 128), st.integers(1, 130), st.integers(0, 2**32))
@settings(max_examples=25)
def test_products_are_added_in_order(rows: int, columns: int, size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    stationary, moving = (
        np.ldexp(rng.standard_normal((rows, n)), rng.integers(-20, 20, (rows, n))).astype(
            np.float32
        )
        for n in (columns, size)
    )
    # Sums that cancel, except for the rounding in float64: nothing else shows their order.
    stationary[rows // 2 :] = -stationary[: rows - rows // 2][::-1]
    moving[rows // 2 :] = moving[: rows - rows // 2][::-1]
    out = np.empty((columns, size), np.float32)
    matmul(stationary, moving, out)
    m, n = int(rng.integers(columns)), int(rng.integers(size))
    terms = stationary[:, m].astype(float) * moving[:, n].astype(float)
    slabs = [in_order(terms[start : start + 128].tolist()) for start in range(0, rows, 128)]
    assert out[m, n] == np.float32(in_order(slabs))


def in_order(terms: list[float]) -> float:
    """Not `sum`, which compensates for rounding from Python 3.12 on."""
    total = 0.0
    for term in terms:
        total += term
    return total


@pytest.mark.parametrize("reverse", [(False, False), (True, False), (False, True)])
@given(data=st.data())
@settings(max_examples=30)
def test_scan(reverse: tuple[bool, bool], data: st.DataObject) -> None:
    op0, op1 = data.draw(st.sampled_from(BINARY)), data.draw(st.sampled_from(BINARY))
    shape = data.draw(st.tuples(st.integers(1, 20), st.integers(1, 12)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    data0, data1 = (rng.standard_normal(shape).astype(np.float32) for _ in range(2))
    initial = rng.standard_normal((shape[0], 1)).astype(np.float32)
    out = np.empty(shape, np.float32)
    with quiet():
        tensor_tensor_scan(data0, data1, initial, out, op0, op1, *reverse)
    carry = initial[:, 0].copy()
    for i in range(shape[1]):
        step = _apply(op0, data0[:, i].copy(), carry, reverse[0])
        carry = _apply(op1, step, data1[:, i].copy(), reverse[1])
        assert out[:, i].tobytes() == carry.tobytes()


def _apply(op: str, a: Floats, b: Floats, reverse: bool) -> Floats:
    out = np.empty_like(a)
    ARITHMETIC[op](*((b, a) if reverse else (a, b)), out)
    return out


@given(
    st.sampled_from(["add", "subtract", "multiply", "maximum", "minimum"]),
    st.integers(1, 300),
    st.integers(0, 2**32),
)
@settings(max_examples=40)
def test_cumulative(op: str, size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((3, size)).astype(np.float32)
    initial = np.array(rng.standard_normal(), np.float32)
    out = np.empty_like(values)
    cumulative(values, initial, out, op)
    carry = np.full(3, initial)
    for i in range(size):
        carry = _apply(op, values[:, i].copy(), carry, False)
        assert out[:, i].tobytes() == carry.tobytes()
