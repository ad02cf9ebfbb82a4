"""Inputs, reference and tolerance of 01_tensor_add."""

import numpy as np

# One float32 addition rounds once: half a unit in the last place, 2**-24.
TOLERANCE = {"rtol": 2**-23, "atol": 0.0}


def inputs() -> dict[str, np.ndarray]:
    """Two and a bit tiles down, one and a bit across."""
    rng = np.random.default_rng(1)
    return {name: rng.standard_normal((300, 2500), dtype=np.float32) for name in ("a", "b")}


def reference(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, ...]:
    return (a.astype(np.float64) + b.astype(np.float64),)
