"""Inputs, reference and tolerance of 05_average_pool, with the constants of the kernel's block."""

import numpy as np

POOL = 3

# Eight float32 additions and a product of values near 1: a few units of 2**-24; means near zero
# have lost their leading digits to cancellation, hence the absolute part.
TOLERANCE = {"rtol": 2**-21, "atol": 2**-21}


def inputs() -> dict[str, np.ndarray]:
    """Two channel tiles; a height of ten windows, a width of ten and one column over."""
    return {"x": np.random.default_rng(5).standard_normal((160, 30, 31), dtype=np.float32)}


def reference(x: np.ndarray) -> tuple[np.ndarray, ...]:
    _, height, width = x.shape
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), (POOL, POOL), (1, 2))
    last_down, last_across = height - POOL + 1, width - POOL + 1
    return (windows[:, 0:last_down:POOL, 0:last_across:POOL].mean(axis=(3, 4)),)
