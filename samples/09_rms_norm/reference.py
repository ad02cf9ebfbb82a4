"""Inputs, reference and tolerance of 09_rms_norm, with the constants of the kernel's block."""

import numpy as np

from samples.common import to_bf16, to_float64

EPS = 1e-6

# Everything but the result is float32, good to about 2**-20. What counts is the one rounding to
# bfloat16: half a unit in the last place, 2**-8.
TOLERANCE = {"rtol": 1.01 * 2**-8, "atol": 0.0}


def inputs() -> dict[str, np.ndarray]:
    """Two row tiles. Row sizes from 1e-3 to 1e3; the smallest are where eps has a say."""
    rng = np.random.default_rng(9)
    size = np.logspace(-3, 3, 200)[:, None]
    return {
        "x": to_bf16((size * rng.standard_normal((200, 2048))).astype(np.float32)),
        "weight": to_bf16(rng.uniform(0.5, 1.5, 2048).astype(np.float32)),
    }


def reference(x: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, ...]:
    rows = to_float64(x)
    rms = np.sqrt(np.square(rows).mean(axis=1, keepdims=True) + EPS)
    return (rows / rms * to_float64(weight),)
