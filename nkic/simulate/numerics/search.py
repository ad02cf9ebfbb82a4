"""Search for values and for the largest elements, in each row of float32 arrays."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]

NOWHERE = -1  # all bits set, as an index of any width


def match8(data: Floats, values: Floats, order: Iterable[int], taken: Flags) -> Indices:
    """Return the first occurrence in `data` (P, N) of each of `values` (P, 8), or NOWHERE: (P, 8).

    Values search in `order`, each past the occurrences found before. On return, `taken` (P, N)
    marks all occurrences found. NaN is never found.
    """
    rows = np.arange(len(data))
    indices = np.full(values.shape, NOWHERE, np.int64)
    taken[...] = False
    for i in order:
        equal = data == values[:, i : i + 1]
        equal &= ~taken
        first = equal.argmax(axis=1)
        occurs = equal[rows, first]
        indices[occurs, i] = first[occurs]
        taken[rows[occurs], first[occurs]] = True
    return indices


def largest(data: Floats, count: int) -> Indices:
    """Return the indices of the `count` largest of each row of (R, N), in ascending order.

    NaN is the largest. Among equal values the first are taken, in the order of their indices.
    """
    # among equal values, the first comes last
    ascending = np.argsort(data[:, ::-1], axis=1, kind="stable")
    kept = np.sort(data.shape[1] - 1 - ascending[:, -count:], axis=1)
    values = np.take_along_axis(data, kept, axis=1)
    return np.take_along_axis(kept, np.argsort(values, axis=1, kind="stable"), axis=1)
