"""Groups of 32 elements with one scale, a power of two (OCP MX), in the hardware's layout.

A group is 8 partitions of 4 consecutive elements. A scale is a code of float8_e8m0fnu: 2^(code -
127), and 255 is NaN.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nkic.machine.dtypes import DType

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Codes = NDArray[np.uint8]

PARTITIONS, LANES = 8, 4  # of a group
BIAS, NAN = 127, 255  # of a scale's code


def quantized(values: Floats, element: DType, headroom: bool = True) -> tuple[Floats, Codes]:
    """Return `values` (P, 4 F) divided by their scales, and the scales' codes (P / 8, F).

    The elements are not yet rounded to `element`. A scale is 2^(floor(log2 of the greatest
    magnitude) - largest exponent + 1), so that no element rounds to more than its type holds; it is
    at least 2^-127, also for a group of zeros. A group with NaN or an infinity has NaN as its scale
    and its elements (assumed). Without `headroom`, the scale is half of that, and elements saturate
    at the type's limit.
    """
    rows, columns = values.shape[0] // PARTITIONS, values.shape[1] // LANES
    groups = values.reshape(rows, PARTITIONS, columns, LANES)
    greatest = np.abs(groups).max(axis=(1, 3))
    finite = np.isfinite(greatest)
    shift = largest_exponent(element) + (not headroom)
    _, above = np.frexp(np.where(finite, greatest, 0))  # floor(log2) + 1
    exponent = np.where(greatest > 0, above - shift, -BIAS)
    exponent = np.maximum(exponent, -BIAS)
    scaled = np.ldexp(groups, -exponent[:, None, :, None])
    scaled = np.clip(scaled, -element.highest, element.highest)
    scaled = np.where(finite[:, None, :, None], scaled, np.float32(np.nan))
    codes = np.where(finite, exponent + BIAS, NAN).astype(np.uint8)
    return scaled.reshape(values.shape), codes


def largest_exponent(element: DType) -> int:
    """Return the largest exponent of `element`: 8 for float8_e4m3fn, 15 for float8_e5m2."""
    return int(np.frexp(element.highest)[1]) - 1


def dequantized(elements: Floats, codes: Codes) -> Doubles:
    """Return `elements` (P, 4 F) times their scales (P / 8, F), exact in float64."""
    rows, columns = codes.shape
    groups = elements.astype(np.float64).reshape(rows, PARTITIONS, columns, LANES)
    scales = np.ldexp(1.0, codes.astype(np.int32) - BIAS)
    scales[codes == NAN] = np.nan
    products: Doubles = groups * scales[:, None, :, None]
    return products.reshape(elements.shape)
