"""Smaller problem sizes for NKIBench's kernels, which contain their sizes as numbers.

The kernels process matrices of 4,096 rows and more: tens of thousands of instructions, and tiles
that `--nki beta1` keeps in HBM. These tables replace numbers in a kernel, and in the sizes of its
inputs; tiles, loops and instructions are unchanged.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

SIZES: Mapping[str, Mapping[int, int]] = {
    "adamw": {86: 2, 10944: 192, 10943: 191},
    "add_rmsnorm_matmul": {4096: 256, 32: 2},
    "bmm": {16: 1},
    "bmm_softmax": {16: 1, 4: 1, 32: 8, 4096: 1024},
    "gqa_full": {32: 1},
    "lora": {12: 1, 32: 1, 5: 1, 12288: 1024, 96: 8},
    "mamba": {7168: 256},
    "matmul": {12: 1, 32: 1, 5: 1, 12288: 1024},
    "matmul_add_rmsnorm": {4096: 256, 32: 2},
    "rope_single_freq_apply": {262144: 1024},
    "silu": {32: 1},
    "swiglu": {3: 1},
    "transpose_matmul": {11: 2, 4: 1, 32: 8, 10944: 1728, 10943: 1727},
}
INPUTS: Mapping[str, tuple[str, ...]] = {"gqa_full": ("v1",)}  # only these are reduced


def smaller(name: str, text: str) -> str:
    """Return the kernel's text with its numbers replaced."""
    sizes = SIZES.get(name, {})
    return re.sub(r"(?<![\w.])\d+(?![\w.])", lambda one: _number(one[0], sizes), text)


def cut(name: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Cut the inputs to the smaller dimensions, from the first elements on."""
    sizes, only = SIZES.get(name, {}), INPUTS.get(name, tuple(inputs))
    return {key: _cut(value, sizes if key in only else {}) for key, value in inputs.items()}


def _number(text: str, sizes: Mapping[int, int]) -> str:
    return str(sizes.get(int(text), text))


def _cut(value: Any, sizes: Mapping[int, int]) -> Any:
    if not isinstance(value, np.ndarray):
        return value
    return np.ascontiguousarray(value[tuple(slice(sizes.get(n, n)) for n in value.shape)])


# ---- references of the reduced kernels that are too large at full size ---------------------------

Array = np.ndarray[Any, np.dtype[Any]]


def _matmul(v1: Array, v2: Array) -> Array:
    """Return 128 rows of the product, over the first 8 of 40 blocks of terms."""
    terms = slice(0, 8)
    product = v1[0, :, terms].reshape(128, -1) @ v2[terms].reshape(-1, v2.shape[-1])
    return product[None]


def _lora(v1: Array, v2: Array, v3: Array, v4: Array) -> Array:
    """Return all rows, and 8 of 96 blocks of columns; one product uses the first 8 blocks of terms,
    the other the first two of every ten.
    """
    some = [10 * ten + one for ten in range(4) for one in range(2)]
    rows = v1.reshape(-1, *v1.shape[-2:])
    thin = rows[:, :8].reshape(len(rows), -1) @ v3[:8].reshape(-1, v3.shape[-1]) @ v4
    whole = rows[:, some].reshape(len(rows), -1) @ v2[some].reshape(-1, v2.shape[-1])
    both: Array = (whole + thin).reshape(*v1.shape[:3], -1, 128)
    return both


# The elements of the inputs that the kernel uses.
REFERENCES: Mapping[str, Callable[..., Array]] = {"matmul": _matmul, "lora": _lora}
