"""Inputs, reference and tolerance of 08_layer_norm, with the constants of the kernel's block."""

import numpy as np

EPS = 1e-5

# Rows have mean 10 and deviation 1: x - mean cancels, so that an error of a few 2**-24 * 10 in
# the mean stays as an absolute one; rsqrt and the products add about 2**-22.
TOLERANCE = {"rtol": 2**-20, "atol": 1e-5}


def inputs() -> dict[str, np.ndarray]:
    """Two row tiles; statistics chunks of 367, 367 and 366, odd and even. Means far from zero."""
    rng = np.random.default_rng(8)
    return {
        "x": (10 + rng.standard_normal((200, 1100))).astype(np.float32),
        "gamma": rng.uniform(0.5, 1.5, 1100).astype(np.float32),
        "beta": rng.standard_normal(1100).astype(np.float32),
    }


def reference(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> tuple[np.ndarray, ...]:
    rows = x.astype(np.float64)
    centred = rows - rows.mean(axis=1, keepdims=True)
    deviation = np.sqrt(np.square(centred).mean(axis=1, keepdims=True) + EPS)
    return (centred / deviation * gamma.astype(np.float64) + beta.astype(np.float64),)
