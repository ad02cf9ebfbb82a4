"""Runs of equal numbers, and indices of nonzero numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Indices = NDArray[np.int64]


def sequence_bounds(ids: NDArray[Any]) -> Indices:
    """Return the first and one past the last index of the run of each of `ids` (N,): (2, N).

    An id of 0 has N and -1. NaN is a run of its own.
    """
    size = len(ids)
    index = np.arange(size)
    differs = ids[1:] != ids[:-1]
    first = np.maximum.accumulate(np.where(np.append(True, differs), index, 0))
    ends = np.where(np.append(differs, True), index + 1, size)
    last = np.minimum.accumulate(ends[::-1])[::-1]
    return np.stack((np.where(ids == 0, size, first), np.where(ids == 0, -1, last)))


def nonzero_with_count(values: NDArray[Any], offset: int, padding: int) -> Indices:
    """Return, for each row of (R, N), the indices of nonzero elements, padding, and their count."""
    rows, size = values.shape
    is_nonzero = values != 0
    indices = np.full((rows, size + 1), padding, np.int64)
    row, column = np.nonzero(is_nonzero)
    counts = is_nonzero.sum(axis=1)
    slot = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    indices[row, slot] = column + offset
    indices[:, -1] = counts
    return indices
