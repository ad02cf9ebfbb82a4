"""Where eight values occur in each partition, on arrays of float32."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]

NOWHERE = -1  # all bits set, as an index of any width


def match8(data: Floats, values: Floats, order: Iterable[int], taken: Flags) -> Indices:
    """The first occurrence in `data` (P, N) of each of `values` (P, 8): (P, 8), or NOWHERE.

    Values look in `order`, each past the occurrences that were found before. `taken` (P, N)
    afterwards marks all that were found. NaN is nowhere.
    """
    rows = np.arange(len(data))
    found = np.full(values.shape, NOWHERE, np.int64)
    taken[...] = False
    for i in order:
        equal = data == values[:, i : i + 1]
        equal &= ~taken
        first = equal.argmax(axis=1)
        there = equal[rows, first]
        found[there, i] = first[there]
        taken[rows[there], first[there]] = True
    return found
