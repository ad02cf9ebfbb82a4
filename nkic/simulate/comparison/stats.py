"""Summary statistics of an array."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.dtypes import DType
from nkic.simulate.io.numbers import Numbers, numbers

_BLOCK = 1 << 18


@dataclass(frozen=True)
class Stats:
    """Minimum, mean and maximum of the finite elements (None without any), and a hash of the bytes.

    `nan` and `inf` count the elements that are NaN or infinite.
    """

    minimum: float | None
    mean: float | None
    maximum: float | None
    nan: int
    inf: int
    sha256: str


def stats_of(stored: NDArray[Any], dtype: DType) -> Stats:
    """Return the statistics of an array in the storage type of `dtype`."""
    flat = np.ascontiguousarray(stored).reshape(-1)
    parts = [_part(numbers(block, dtype)) for block in _blocks(flat)]
    finite = [part for part in parts if part.count]
    count = sum(part.count for part in finite)
    return Stats(
        min((part.minimum for part in finite), default=None),
        fsum(part.total for part in finite) / count if count else None,
        max((part.maximum for part in finite), default=None),
        sum(part.nan for part in parts),
        sum(part.inf for part in parts),
        sha256(flat.data).hexdigest(),
    )


@dataclass(frozen=True)
class _Part:
    minimum: float
    total: float
    maximum: float
    count: int
    nan: int
    inf: int


def _blocks(flat: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Yield a block at a time: float64 takes eight times the bytes of a narrow type."""
    return (flat[start : start + _BLOCK] for start in range(0, flat.size, _BLOCK))


def _part(values: Numbers) -> _Part:
    nan = int(np.count_nonzero(np.isnan(values)))
    inf = int(np.count_nonzero(np.isinf(values)))
    finite = values[np.isfinite(values)] if nan or inf else values
    if not finite.size:
        return _Part(0.0, 0.0, 0.0, 0, nan, inf)
    total, count = float(finite.sum()), finite.size
    return _Part(float(finite.min()), total, float(finite.max()), count, nan, inf)
