"""Inputs, reference and tolerance of 10_attention."""

import numpy as np

from samples.common import to_bf16, to_float64

# The weights are rounded to bfloat16 before they meet the values, and so is the result: twice
# 2**-8 relative. The weights' errors do not cancel where the values do: hence the absolute part.
TOLERANCE = {"rtol": 2**-7, "atol": 4e-3}


def inputs() -> dict[str, np.ndarray]:
    """Two heads, eight query tiles each. Scores up to about 15, so that the maximum matters."""
    rng = np.random.default_rng(10)
    draw = rng.standard_normal
    return {
        "q": to_bf16(2 * draw((2, 128, 1024), dtype=np.float32)),
        "k": to_bf16(2 * draw((2, 128, 1024), dtype=np.float32)),
        "v": to_bf16(draw((2, 1024, 128), dtype=np.float32)),
    }


def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, ...]:
    queries, keys, values = to_float64(q), to_float64(k), to_float64(v)
    depth, length = queries.shape[1:]
    scores = np.swapaxes(queries, 1, 2) @ keys / np.sqrt(depth)
    scores = np.where(np.tri(length, dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    return (weights @ values / weights.sum(axis=2, keepdims=True),)
