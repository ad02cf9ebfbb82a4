"""Inputs, reference and tolerance of the five kernels of 06_matmul."""

import numpy as np

from samples.common import to_bf16, to_float64

# Products of bfloat16 are exact in float32; 512 of them add up with an error near 1e-5, which
# matters where they cancel. Then one rounding to bfloat16: half a unit in the last place, 2**-8.
TOLERANCE = {"rtol": 1.01 * 2**-8, "atol": 1e-4}

# The file's other kernels. matmul_basic takes one tile: the upper left corner of each input.
KERNELS: dict[str, dict[str, str]] = {
    "matmul_basic": {"lhsT": "bfloat16[128, 128]", "rhs": "bfloat16[128, 512]"},
    "matmul_tiled": {},
    "matmul_hoisted": {},
    "matmul_blocked_free": {},
}


def inputs() -> dict[str, np.ndarray]:
    """Two blocks in each of M, N and K, two tiles in each block."""
    rng = np.random.default_rng(6)
    return {
        "lhsT": to_bf16(rng.standard_normal((512, 512), dtype=np.float32)),
        "rhs": to_bf16(rng.standard_normal((512, 2048), dtype=np.float32)),
    }


def reference(lhsT: np.ndarray, rhs: np.ndarray) -> tuple[np.ndarray, ...]:
    return (to_float64(lhsT).T @ to_float64(rhs),)
