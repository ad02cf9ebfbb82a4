"""Helpers for reference.py files: bfloat16 arrays without a bfloat16 dtype.

NumPy has no bfloat16, so its values are stored as raw two-byte elements, dtype `V2`. `np.savez`
stores an ml_dtypes array in the same way, and `nki-run` reads it as bfloat16 if the kernel's
input has that type.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BF16 = np.dtype("V2")


def to_bf16(values: NDArray[np.float32]) -> NDArray[np.void]:
    """Round float32 to the nearest bfloat16, ties to even; NaN stays a (quiet) NaN."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    # Half a step, less one unless the kept part is odd: adding it carries exactly when nearest
    # even rounds up. uint64, because a negative NaN would carry out of 32 bits.
    half = np.uint64(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)).astype(np.uint64)
    rounded = ((bits.astype(np.uint64) + half) >> np.uint64(16)).astype(np.uint16)
    quiet_nan = (bits >> np.uint32(16)).astype(np.uint16) | np.uint16(0x0040)
    return np.where(np.isnan(values), quiet_nan, rounded).view(BF16)


def from_bf16(raw: NDArray[np.void]) -> NDArray[np.float32]:
    """Return the float32 values of a `V2` array, exact: bfloat16 is the upper half of float32."""
    upper = np.ascontiguousarray(raw).view(np.uint16).astype(np.uint32)
    return (upper << np.uint32(16)).view(np.float32)


def to_float64(array: NDArray[np.generic]) -> NDArray[np.float64]:
    """Convert any sample array, bfloat16 included, to float64, the type of the references."""
    if array.dtype == BF16:
        return from_bf16(array).astype(np.float64)  # type: ignore[arg-type]
    return array.astype(np.float64)
