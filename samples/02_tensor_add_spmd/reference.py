"""Inputs, reference and tolerance of 02_tensor_add_spmd."""

import numpy as np

from samples.common import to_bf16, to_float64

# The sum is rounded to bfloat16 once: half a unit in the last place, 2**-8, and a hair more
# where float32 has rounded it before.
TOLERANCE = {"rtol": 1.01 * 2**-8, "atol": 0.0}


def inputs() -> dict[str, np.ndarray]:
    """150 rows per program: one whole tile of 128 and 22 more."""
    rng = np.random.default_rng(2)
    draw = rng.standard_normal
    return {name: to_bf16(draw((600, 3072), dtype=np.float32)) for name in ("a", "b")}


def reference(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, ...]:
    return (to_float64(a) + to_float64(b),)
