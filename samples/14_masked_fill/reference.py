"""Inputs, reference and tolerance of 14_masked_fill, with the constants of the kernel's block."""

import numpy as np

FILL = -1.0

# Values are kept or replaced, not computed; FILL is exact in float16.
TOLERANCE = {"rtol": 0.0, "atol": 0.0}


def inputs() -> dict[str, np.ndarray]:
    """Two row tiles. Lengths from an empty row to a full one, and beyond the row's end."""
    rng = np.random.default_rng(14)
    lengths = rng.integers(0, 3000, 200)
    lengths[[0, 1, 199]] = 0, 3000, 4000
    return {
        "x": rng.standard_normal((200, 3000)).astype(np.float16),
        "lengths": lengths.astype(np.int32),
    }


def reference(x: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, ...]:
    filled = x.astype(np.float64)
    for row, length in zip(filled, lengths, strict=True):
        row[length:] = FILL
    return (filled,)
