"""Families of unusual inputs, which random normal numbers never resemble.

A kernel that drops a guard (the maximum of a softmax, an eps, a mask, a clamp) is right on normal
numbers and wrong on some of these. Each family replaces the floating-point inputs of a case;
integers stay, since they are often indices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from nkic.machine.dtypes import DType

Numbers = NDArray[np.float64]
_Make = Callable[[np.random.RandomState, int, DType], Numbers]


def _large(state: np.random.RandomState, count: int, dtype: DType) -> Numbers:
    return state.standard_normal(count) * min(1e4, dtype.highest / 64)


def _tiny(state: np.random.RandomState, count: int, dtype: DType) -> Numbers:
    return state.standard_normal(count) * 2.0**-12


def _zeros(state: np.random.RandomState, count: int, dtype: DType) -> Numbers:
    return np.where(state.randint(0, 2, count) == 0, 0.0, -0.0)


def _equal(state: np.random.RandomState, count: int, dtype: DType) -> Numbers:
    return np.full(count, 1.5)


def _sorted(state: np.random.RandomState, count: int, dtype: DType) -> Numbers:
    return np.sort(state.standard_normal(count))


def _one_hot(state: np.random.RandomState, count: int, dtype: DType) -> Numbers:
    values = np.zeros(count)
    values[state.randint(0, count)] = 1.0
    return values


def _ratios(state: np.random.RandomState, count: int, dtype: DType) -> Numbers:
    signs = np.where(state.randint(0, 2, count) == 0, 1.0, -1.0)
    return signs * 2.0 ** state.uniform(-12, 8, count)


def _infinite(state: np.random.RandomState, count: int, dtype: DType) -> Numbers:
    values: Numbers = state.standard_normal(count)
    values[state.randint(0, count)] = np.inf
    return values


def _nan(state: np.random.RandomState, count: int, dtype: DType) -> Numbers:
    values: Numbers = state.standard_normal(count)
    values[state.randint(0, count)] = np.nan
    return values


def _denormal(state: np.random.RandomState, count: int, dtype: DType) -> Numbers:
    return np.asarray(state.randint(1, 8, count) * dtype.smallest, np.float64)


FAMILIES: Mapping[str, _Make] = {
    "large": _large,
    "tiny": _tiny,
    "zeros": _zeros,
    "equal": _equal,
    "sorted": _sorted,
    "one_hot": _one_hot,
    "ratios": _ratios,
    "infinite": _infinite,
    "nan": _nan,
    "denormal": _denormal,
}


def values_of(family: str, name: str, dtype: DType, count: int, seed: int) -> Numbers:
    """Return a family's numbers for an input; the same on every machine."""
    state = np.random.RandomState(np.array([seed, crc32(f"{family} {name}".encode())], np.uint32))
    found: Any = FAMILIES[family](state, count, dtype)
    return np.asarray(found, np.float64)
