"""Test statistics, the eight largest, selection and transposition, and orders of addition."""

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from nkic.simulate.numerics import elementwise, quiet, reduction
from nkic.simulate.numerics.reduction import bn_aggr, bn_stats, reduce, reduce_bits

Floats = NDArray[np.float32]


def drawn(*shape: int) -> Floats:
    return np.random.default_rng(11).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("size", [1, 2, 7, 512])
def test_bn_stats(size: int) -> None:
    values, out = drawn(4, size) + 3, np.empty((4, 6), np.float32)
    bn_stats(values, out)
    for row, found in zip(values.astype(float), out, strict=True):
        for part, triple in ((row[::2], found[:3]), (row[1::2], found[3:])):
            mean, spread = (part.mean(), part.var() * len(part)) if len(part) else (0, 0)
            np.testing.assert_allclose(triple, [len(part), mean, spread], rtol=1e-6, atol=1e-30)


def test_bn_aggr_gives_the_mean_and_variance_of_all() -> None:
    values = drawn(4, 700) * 5 - 2
    statistics = np.empty((4, 12), np.float32)
    bn_stats(values[:, :512], statistics[:, :6])
    bn_stats(values[:, 512:], statistics[:, 6:])
    out = np.empty((4, 2), np.float32)
    bn_aggr(statistics, out)
    wide = values.astype(float)
    np.testing.assert_allclose(out, np.stack([wide.mean(1), wide.var(1)], 1), rtol=2e-6)
    bn_aggr(np.zeros((4, 3), np.float32), out)
    assert not out.any()


def test_the_layout_of_statistics_does_not_matter() -> None:
    values = np.repeat(steep(4, 256), 2, axis=1)  # even and odd elements cancel
    turned = np.asfortranarray(values)
    results = []
    for data in (values, turned):
        statistics, out = np.empty((4, 6), np.float32), np.empty((4, 2), np.float32)
        bn_stats(data, statistics)
        bn_aggr(statistics if data is values else np.asfortranarray(statistics), out)
        results.append(statistics.tobytes() + out.tobytes())
    assert results[0] == results[1]


def test_max8() -> None:
    values = drawn(5, 100)
    values[0, :9] = 7
    values[1, 3] = np.inf
    values[2] = -0.0
    out = np.empty((5, 8), np.float32)
    elementwise.max8(values, out)
    expected = np.array([sorted(map(float, row), reverse=True)[:8] for row in values])
    np.testing.assert_array_equal(out, expected)
    assert not np.signbit(out[2]).any()


@pytest.mark.parametrize("kind", [np.float32, np.uint16, np.uint8])
@pytest.mark.parametrize("shape", [(128, 512), (32, 32), (1, 5), (17, 3)])
def test_transpose_moves_bits(kind: type[np.generic], shape: tuple[int, int]) -> None:
    values = np.random.default_rng(5).integers(0, 256, (*shape, 4), np.uint8)
    values = values.view(kind)[..., 0]
    out = np.empty(shape[::-1], kind)
    elementwise.transpose(values, out)
    width = f"u{values.dtype.itemsize}"
    np.testing.assert_array_equal(out.view(width), values.T.view(width))


def test_select_is_bit_exact_and_broadcasts() -> None:
    nan = np.array([0x7F800001, 0xFFFFFFFF], np.uint32).view(np.float32)
    out = np.empty((3, 2), np.float32)
    mask = np.array([[True], [False], [True]])
    elementwise.select(mask, nan, np.array(-0.0, np.float32), out)
    low, high = 0x7F800001, 0xFFFFFFFF
    assert out.view(np.uint32).tolist() == [[low, high], [1 << 31, 1 << 31], [low, high]]


def test_select_into_an_operand() -> None:
    a, b = drawn(600, 600), drawn(600, 600)[::-1].copy()
    expected = np.where(a > b, a, b)
    elementwise.select(a > b, a, b, b)
    np.testing.assert_array_equal(b, expected)


def pairwise(row: list[float]) -> float:
    """Add in the order that reduction.py states."""
    if len(row) > 128:
        half = len(row) // 2 // 8 * 8
        return pairwise(row[:half]) + pairwise(row[half:])
    if len(row) < 8:
        total = row[0]
        for value in row[1:]:
            total += value
        return total
    whole = len(row) // 8 * 8
    eight = row[:8]
    for start in range(8, whole, 8):
        eight = [a + b for a, b in zip(eight, row[start : start + 8], strict=True)]
    a, b, c, d, e, f, g, h = eight
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for value in row[whole:]:
        total += value
    return total


def steep(*shape: int) -> Floats:
    """Draw numbers whose sums depend on the order even in float64, and cancel so that it shows."""
    rng = np.random.default_rng(13)
    values = np.ldexp(rng.standard_normal(shape), rng.integers(-60, 60, shape))
    return (values - values[..., ::-1]).astype(np.float32)


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 100, 128, 129, 300, 512, 3000])
def test_sums_are_pairwise_in_float64(size: int) -> None:
    values, out = steep(6, size), np.empty(6, np.float32)
    rows = values.astype(float).tolist()
    reduce("add", values, out)
    assert out.tolist() == [float(np.float32(pairwise(row))) for row in rows]
    reduce("average", values, out)
    assert out.tolist() == [float(np.float32(pairwise(row) / size)) for row in rows]
    reduce("subtract", values, out)
    rest = [pairwise(row[1:]) if size > 1 else 0.0 for row in rows]
    expected = [np.float32(row[0] - r) for row, r in zip(rows, rest, strict=True)]
    assert out.tolist() == [float(e) for e in expected]


def test_ordinary_sums_are_correctly_rounded() -> None:
    values, out = drawn(50, 512), np.empty(50, np.float32)
    reduce("add", values, out)
    exact = [float(sum(map(Fraction, map(float, row)))) for row in values]
    assert out.tolist() == [float(np.float32(e)) for e in exact]


def test_products_go_from_first_to_last() -> None:
    values, out = (1 + drawn(6, 300) / 10).astype(np.float32), np.empty(6, np.float32)
    reduce("multiply", values, out)
    assert out.tolist() == [float(np.float32(math.prod(row))) for row in values.astype(float)]


EXPECTED = {
    "maximum": 4,
    "minimum": -5,
    "abs_max": -5,
    "abs_min": 0.5,
    "logical_and": 1,
    "logical_or": 1,
    "logical_xor": 0,
}


@pytest.mark.parametrize(("op", "expected"), EXPECTED.items())
def test_other_reductions(op: str, expected: float) -> None:
    values, out = np.array([[1, -5, 4, 0.5]], np.float32), np.empty(1, np.float32)
    reduce(op, values, out)
    assert out.tolist() == [expected]


def test_logical_reductions_see_zeros() -> None:
    values, out = np.array([[1, 0, 4, 0.5], [0, 0, -0.0, 0]], np.float32), np.empty(2, np.float32)
    found = {}
    for op in ("logical_and", "logical_or", "logical_xor"):
        reduce(op, values, out)
        found[op] = out.tolist()
    assert found == {"logical_and": [0, 0], "logical_or": [1, 0], "logical_xor": [1, 0]}


def test_ties_of_magnitude_give_the_last() -> None:
    values, out = np.array([[3, -3, 1, -1], [-3, 3, -1, 1]], np.float32), np.empty(2, np.float32)
    reduce("abs_max", values, out)
    assert out.tolist() == [-3, 3]
    reduce("abs_min", values, out)
    assert out.tolist() == [-1, 1]


@pytest.mark.parametrize("op", sorted(reduction.OPERATORS))
def test_layout_and_number_of_axes_do_not_matter(op: str) -> None:
    values = steep(9, 6, 40)
    if op == "multiply":
        values = np.ldexp(values, -np.frexp(values)[1])
    expected, flat, out = (np.empty(9, np.float32) for _ in range(3))
    turned = np.empty((40, 9, 12), np.float32).transpose(1, 2, 0)[:, ::2]
    np.copyto(turned, values)
    reduce(op, np.ascontiguousarray(values), expected)
    reduce(op, values.reshape(9, 240), flat)
    reduce(op, turned, out)
    assert out.tobytes() == expected.tobytes() == flat.tobytes()
    inner = np.empty((9, 6), np.float32)
    reduce(op, turned, inner, keep=2)
    one = np.empty(1, np.float32)
    reduce(op, values[4, 2:3], one)
    assert inner[4, 2].tobytes() == one.tobytes()


@pytest.mark.parametrize("op", ["maximum", "minimum", "abs_max", "abs_min", "add"])
def test_nan_spreads(op: str) -> None:
    values, out = drawn(2, 20), np.empty(2, np.float32)
    values[1, 7] = np.nan
    with quiet():
        reduce(op, values, out)
    assert np.isnan(out).tolist() == [False, True]


def test_extreme_zero_is_positive() -> None:
    values, out = np.full((1, 4), -0.0, np.float32), np.empty(1, np.float32)
    for op in ("maximum", "minimum"):
        reduce(op, values, out)
        assert not np.signbit(out[0])


def test_bitwise_reductions() -> None:
    raw = np.array([[0b1100, 0b1010, 0b1001]], np.uint16)
    out = np.empty(1, np.uint16)
    found = {}
    for op in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        reduce_bits(op, raw, out)
        found[op] = int(out[0])
    assert found == {"bitwise_and": 0b1000, "bitwise_or": 0b1111, "bitwise_xor": 0b1111}
