"""Inputs, reference and tolerance of host_section, with the constants of the kernel's block."""

import numpy as np

ALPHA = 0.5

# A product with a power of two is exact; the sum rounds once, 2**-24.
TOLERANCE = {"rtol": 2**-23, "atol": 0.0}


def inputs() -> dict[str, np.ndarray]:
    """Two row tiles."""
    rng = np.random.default_rng(16)
    return {name: rng.standard_normal((256, 2048), dtype=np.float32) for name in ("x", "y")}


def reference(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
    return (ALPHA * x.astype(np.float64) + y.astype(np.float64),)
