"""What the kernels of the course compute, in NumPy: each task.toml names one function."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def vector_add(a: Array, b: Array) -> Array:
    return a + b


def transpose(x: Array) -> Array:
    return x.T


def matmul(a_t: Array, b: Array) -> Array:
    return a_t.T @ b


def convolution(x: Array, w: Array) -> Array:
    times = x.shape[1] - len(w) + 1
    shifted = np.stack([x[:, tap : tap + times] for tap in range(len(w))])
    return np.einsum("jct,jco->ot", shifted, w, optimize=True)


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def attention(q: Array, k: Array, v: Array) -> Array:
    return softmax(q.T @ k / np.sqrt(len(q))) @ v
