"""Arrays of JAX as NumPy arrays, and back."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nkic.api.arrays import Array

update = None  # arrays of JAX do not change


def array_of(value: Any) -> Array | None:
    """The array of a JAX array; it cannot be written."""
    if not isinstance(value, jax.Array):
        return None
    if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        return None
    return np.asarray(value)


def back(array: Array, like: Any) -> Any:
    """An array on the device of `like`."""
    return jnp.asarray(array)
