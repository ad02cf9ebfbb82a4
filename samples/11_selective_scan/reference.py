"""Inputs, reference and tolerance of 11_selective_scan."""

import numpy as np

# h forgets: decay is at most exp(-0.01), so that errors of 2**-24 per step pile up to about a
# hundred times that at worst. y adds eight states of size up to about 10, and may cancel.
TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}


def inputs() -> dict[str, np.ndarray]:
    """Two batches, two channel tiles (the second of 32), two time tiles (the second of 188)."""
    rng = np.random.default_rng(11)
    batch, channels, states, time = 2, 160, 8, 700
    arrays = {
        "delta": rng.uniform(0.01, 0.5, (batch, channels, time)),
        "u": rng.standard_normal((batch, channels, time)),
        "A": -np.tile(np.arange(1.0, states + 1), (channels, 1)) * rng.uniform(1, 2, (channels, 1)),
        "B": rng.standard_normal((batch, states, time)),
        "C": rng.standard_normal((batch, states, time)),
    }
    return {name: array.astype(np.float32) for name, array in arrays.items()}


def reference(
    delta: np.ndarray,
    u: np.ndarray,
    A: np.ndarray,
    B: np.ndarray,
    C: np.ndarray,
) -> tuple[np.ndarray, ...]:
    batch, channels, time = delta.shape
    step, drive, decay = (array.astype(np.float64) for array in (delta, u, A))
    state = np.zeros((batch, channels, A.shape[1]))
    y = np.empty((batch, channels, time))
    for t in range(time):
        dt = step[:, :, t, None]
        gain = B[:, None, :, t].astype(np.float64)
        state = np.exp(dt * decay) * state + dt * drive[:, :, t, None] * gain
        y[:, :, t] = np.einsum("bcs,bs->bc", state, C[:, :, t].astype(np.float64))
    return (y,)
