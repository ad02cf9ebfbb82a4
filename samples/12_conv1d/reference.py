"""Inputs, reference and tolerance of 12_conv1d."""

import numpy as np

from samples.common import to_bf16, to_float64

# 768 exact products add up in float32, absolute error near 1e-5; then one rounding to bfloat16,
# half a unit in the last place, 2**-8.
TOLERANCE = {"rtol": 1.01 * 2**-8, "atol": 1e-4}


def inputs() -> dict[str, np.ndarray]:
    """Input channels 128 + 64, output channels 2 * 128, times 512 + 512 + 273."""
    rng = np.random.default_rng(12)
    draw = rng.standard_normal
    return {
        "x": to_bf16(draw((192, 1300), dtype=np.float32)),
        "w": to_bf16(draw((4, 192, 256), dtype=np.float32) / 16),
        "bias": draw(256, dtype=np.float32),
    }


def reference(x: np.ndarray, w: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, ...]:
    signal, weights = to_float64(x), to_float64(w)
    windows = np.lib.stride_tricks.sliding_window_view(signal, len(weights), axis=1)
    sums = np.einsum("itj,jio->ot", windows, weights, optimize=True)
    return (np.maximum(sums + bias.astype(np.float64)[:, None], 0),)
