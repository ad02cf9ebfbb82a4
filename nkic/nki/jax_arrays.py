"""Arrays of JAX as NumPy arrays, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nkic.api.arrays import Array

cast = "`.astype(jnp.{})`"
update = None  # arrays of JAX do not change


def array_of(value: Any) -> Array | None:
    """The array of a JAX array; it cannot be written."""
    if not isinstance(value, jax.Array):
        return None
    if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        return None
    return np.asarray(value)


def guarded(values: Any, given: Sequence[Any], kernel: str) -> Any:
    """The results: JAX asks for gradients of what it traces, and of nothing else."""
    return values


def back(array: Array, like: Any) -> Any:
    """An array on the device of `like`."""
    return jnp.asarray(array)
