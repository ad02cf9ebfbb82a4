"""Inputs, reference and tolerance of 03_transpose."""

import numpy as np

# TensorE transposes bit for bit from NeuronCore-v3 (trn2) on.
TOLERANCE = {"rtol": 0.0, "atol": 0.0}


def inputs() -> dict[str, np.ndarray]:
    """A full group of four row tiles and a ragged one; two whole column tiles and a ragged one."""
    return {"x": np.random.default_rng(3).standard_normal((600, 300), dtype=np.float32)}


def reference(x: np.ndarray) -> tuple[np.ndarray, ...]:
    return (x.astype(np.float64).T,)
