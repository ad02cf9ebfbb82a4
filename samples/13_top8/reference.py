"""Inputs, reference and tolerance of 13_top8."""

import numpy as np

# Values are picked, not computed.
TOLERANCE = {"rtol": 0.0, "atol": 0.0}


def inputs() -> dict[str, np.ndarray]:
    """Two row tiles; two whole column tiles and one of 904. Whole numbers, so there are ties."""
    rng = np.random.default_rng(13)
    return {"x": np.round(20 * rng.standard_normal((200, 5000))).astype(np.float32)}


def reference(x: np.ndarray) -> tuple[np.ndarray, ...]:
    return (-np.sort(-x.astype(np.float64), axis=1)[:, :8],)
