"""Conversion between JAX arrays and NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nkic.api.arrays import Array

cast = "`.astype(jnp.{})`"
update = None  # arrays of JAX are immutable


def array_of(value: Any) -> Array | None:
    """Return the read-only array of a JAX array; None for other values."""
    if not isinstance(value, jax.Array):
        return None
    if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        return None
    return np.asarray(value)


def guarded(values: Any, arguments: Sequence[Any], kernel: str) -> Any:
    """Return the results unchanged: JAX differentiates only what it traces."""
    return values


def back(array: Array, like: Any) -> Any:
    """Return a JAX array on the device of `like`."""
    return jnp.asarray(array)
