"""Test microscaling against the OCP definitions in float64: quantising, multiplying, and both."""

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from tests.harness.instruction import Tile, call, run, tile
from tests.harness.reference import stored

Array = NDArray[Any]
RNG = np.random.default_rng(23)
LARGEST = {"float8_e4m3fn": 8, "float8_e5m2": 15}  # exponents
ELEMENTS = ("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn")
SCALES = ("float8_e8m0fnu", "uint8")


def wide(*shape: int) -> Array:
    """Draw numbers of very different sizes from group to group, all exact in bfloat16."""
    sizes = np.ldexp(1.0, RNG.integers(-9, 10, shape))
    return stored(RNG.standard_normal(shape) * sizes, "bfloat16").astype(np.float64)


# The definitions. Codes of elements are the bytes of ml_dtypes; a scale's is its exponent + 127.


def quantized(values: Array, element: str) -> tuple[Array, Array]:
    """Return elements as numbers (P, 4 F), and codes of scales (P / 8, F), group by group."""
    partitions, free = values.shape
    elements = np.empty(values.shape)
    codes = np.empty((partitions // 8, free // 4), np.uint8)
    for g in range(partitions // 8):
        for f in range(free // 4):
            group = (slice(8 * g, 8 * g + 8), slice(4 * f, 4 * f + 4))
            most = np.abs(values[group]).max()
            power = math.floor(math.log2(most)) - (LARGEST[element] - 1) if most else -127
            power = max(power, -127)
            codes[g, f] = power + 127
            elements[group] = (values[group] / 2.0**power).astype(getattr(ml_dtypes, element))
    return elements, codes


def numbers(elements: Array, codes: Array) -> Array:
    """Return elements times their scales."""
    scales = 2.0 ** (codes.astype(np.float64) - 127)
    spread = np.repeat(np.repeat(scales, 8, axis=0), 4, axis=1)
    return np.asarray(elements.astype(np.float64) * spread)


def product(left: Array, right: Array) -> Array:
    """Return (M, N) from (K, 4 M) and (K, 4 N): packed elements are contracted, too."""
    k = len(left)
    return np.asarray(np.einsum("kmi,kni->mn", left.reshape(k, -1, 4), right.reshape(k, -1, 4)))


def packed(elements: Array, element: str) -> Array:
    """Pack four elements in a word, the first in the lowest bits."""
    codes = elements.astype(getattr(ml_dtypes, element)).view(np.uint8).astype(np.uint32)
    bits = 4 if element == "float4_e2m1fn" else 8
    words = sum(codes.reshape(len(codes), -1, 4)[..., i] << (bits * i) for i in range(4))
    return np.asarray(words).astype(np.uint16 if bits == 4 else np.uint32)


def unpacked(words: Array, element: str) -> Array:
    """Unpack the 8-bit elements of words, as numbers."""
    codes = np.stack([words >> 8 * i & 255 for i in range(4)], axis=-1).astype(np.uint8)
    found = codes.view(getattr(ml_dtypes, element)).astype(np.float64)
    return np.asarray(found.reshape(len(words), -1))


def scale_tile(codes: Array, partitions: int, dtype: str, at: int = 0) -> Tile:
    """Return codes in a tile that starts at partition `at` of its tensor, spread over the
    quadrants.
    """
    spread = np.full((max(partitions - at, 4), codes.shape[1]), 0xA7, np.uint8)
    for g, row in enumerate(codes):
        spread[g // 4 * 32 + g % 4] = row
    kind = np.uint8 if dtype == "uint8" else getattr(ml_dtypes, dtype)
    return tile(spread.view(kind), dtype=dtype, start=at)


def gathered(spread: Array, groups: int) -> Array:
    return spread.view(np.uint8)[[g // 4 * 32 + g % 4 for g in range(groups)]]


# quantize_mx


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("element", LARGEST)
@pytest.mark.parametrize("partitions", [32, 64, 128])
@pytest.mark.parametrize("given", ["bfloat16", "float16"])
def test_quantize_mx(partitions: int, element: str, scale: str, given: str) -> None:
    values = wide(partitions, 24)
    src = tile(values.reshape(partitions, 6, 4), dtype=given, steps=(5, 1))
    dst = tile((partitions, 6), dtype=f"{element}_x4", steps=(2,))
    scales = scale_tile(np.zeros((partitions // 8, 6), np.uint8), partitions, scale)
    outcome = run(
        [call("quantize_mx", dst=dst, src=src, dst_scale=scales)],
        target="trn3",
    )
    exact = src.window(src.tensor.contents).astype(np.float64).reshape(partitions, 24)
    elements, codes = quantized(exact, element)
    np.testing.assert_array_equal(gathered(outcome[scales], partitions // 8), codes)
    np.testing.assert_array_equal(unpacked(outcome[dst], element), elements)
    kept = outcome[scales].view(np.uint8)[4:32]
    assert (kept == 0xA7).all(), "partitions without scales have changed"


@pytest.mark.parametrize("element", LARGEST)
def test_scales_of_extreme_groups(element: str) -> None:
    """Zeros; powers of two and numbers just below; numbers too small for a scale; NaN."""
    most = [0.0, 1.0, 1.9921875, 2.0, 3.3e38, 2.0**-126, 2.0**-133, np.inf, np.nan]
    values = np.zeros((32, 36))
    values[5, 2::4] = most
    values[6, 1::4] = -np.abs(most) / 2
    src, scales = tile(values, dtype="bfloat16"), tile((4, 9), dtype="uint8")
    dst = tile((32, 9), dtype=f"{element}_x4")
    outcome = run([call("quantize_mx", dst=dst, src=src, dst_scale=scales)], target="trn3")
    down = LARGEST[element] - 1
    expected = [0, 127 - down, 127 - down, 128 - down, 254 - down, 0, 0, 255, 255]
    assert outcome[scales][0].tolist() == expected
    assert (outcome[scales][1:] == 0).all()
    found = unpacked(outcome[dst], element)[:8].reshape(8, 9, 4)
    assert np.isnan(found[:, 7:]).all() and np.isfinite(found[:, :7]).all()
    exact = src.window(src.tensor.contents).astype(np.float64)[:, :28]
    elements, _ = quantized(exact, element)
    np.testing.assert_array_equal(unpacked(outcome[dst], element)[:, :28], elements)


# nc_matmul_mx


def operand(partitions: int, columns: int, element: str) -> tuple[Array, Array]:
    """Draw elements of the type as numbers, and scales."""
    shape = (partitions, 4 * columns)
    elements = RNG.standard_normal(shape) * 3
    codes = RNG.integers(120, 135, (partitions // 8, columns)).astype(np.uint8)
    return elements.astype(getattr(ml_dtypes, element)).astype(np.float64), codes


@pytest.mark.parametrize("left", ELEMENTS)
@pytest.mark.parametrize("right", ELEMENTS)
@pytest.mark.parametrize("partitions", [32, 64, 96, 128])
def test_nc_matmul_mx(left: str, right: str, partitions: int) -> None:
    m, n = 6, 10
    a, b = operand(partitions, m, left), operand(partitions, n, right)
    dst = tile((m, n), buffer="psum", steps=(2,))
    values: dict[str, Any] = {
        "stationary": tile(packed(a[0], left), dtype=f"{left}_x4"),
        "moving": tile(packed(b[0], right).reshape(-1, 2, 5), dtype=f"{right}_x4", steps=(7, 1)),
        "stationary_scale": scale_tile(a[1], partitions, "float8_e8m0fnu"),
        "moving_scale": scale_tile(b[1], partitions, "uint8", at=8),
    }
    expected = product(numbers(*a), numbers(*b))
    steps = [call("nc_matmul_mx", dst=dst, **values, accumulate=flag) for flag in (False, True)]
    once, twice = (run(steps[:count], target="trn3")[dst] for count in (1, 2))
    np.testing.assert_array_equal(once, expected.astype(np.float32))
    np.testing.assert_array_equal(twice, 2 * expected.astype(np.float32))


@pytest.mark.parametrize("tiling", [{}, {"tile_position": (32, 0), "tile_size": (32, 128)}])
def test_extreme_scales_and_nan(tiling: dict[str, Any]) -> None:
    """Factors beyond float32 with products inside it; 255 makes a group NaN."""
    elements = np.zeros((32, 8))
    elements[0] = 1.5
    elements[9, 4:] = 1.0
    left, right = np.full((4, 2), 127, np.uint8), np.full((4, 2), 127, np.uint8)
    left[0], right[0] = 254, 0
    large = elements * np.array([448.0 / 1.5])
    right[1, 1] = 255
    dst = tile((2, 2), dtype="bfloat16", buffer="psum")
    values: dict[str, Any] = {
        "stationary": tile(packed(large, "float8_e4m3fn"), dtype="float8_e4m3fn_x4"),
        "moving": tile(packed(elements, "float8_e5m2"), dtype="float8_e5m2_x4"),
        "stationary_scale": tile(left, dtype="uint8"),
        "moving_scale": tile(right, dtype="uint8"),
    }
    found = run([call("nc_matmul_mx", dst=dst, **values, **tiling)], target="trn3")[dst]
    assert found[:, 0].astype(np.float64).tolist() == [4 * 448 * 1.5] * 2
    assert np.isnan(found[:, 1].astype(np.float64)).all()


# Both, with the scales of two tiles in one.


@pytest.mark.parametrize("element", LARGEST)
@pytest.mark.parametrize("partitions", [32, 128])
def test_quantise_and_multiply(partitions: int, element: str) -> None:
    m, n = 8, 16
    x, y = wide(partitions, 4 * m), wide(partitions, 4 * n)
    shared = tile(np.full((partitions, n), 127, np.uint8))
    scales = [
        shared.over(dims=((1, m),)),
        shared.over(start=4, partitions=partitions - 4),
    ]
    data = [tile((partitions, c), dtype=f"{element}_x4") for c in (m, n)]
    dst = tile((m, n), buffer="psum")
    steps = [
        call("quantize_mx", dst=to, src=tile(given, dtype="bfloat16"), dst_scale=scale)
        for to, given, scale in zip(data, (x, y), scales, strict=True)
    ]
    names = ("stationary", "moving", "stationary_scale", "moving_scale")
    operands: dict[str, Any] = dict(zip(names, (*data, *scales), strict=True))
    found = run([*steps, call("nc_matmul_mx", dst=dst, **operands)], target="trn3")[dst]
    left, right = (numbers(*quantized(given, element)) for given in (x, y))
    np.testing.assert_allclose(found, product(left, right), rtol=1e-6, atol=1e-9)
    exact, bound = product(x, y), product(np.abs(x), np.abs(y))
    assert (np.abs(found - exact) <= bound * (0.3 if element == "float8_e5m2" else 0.15)).all()
