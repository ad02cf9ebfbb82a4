"""What an array is like, in a few numbers."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.dtypes import DType
from nkic.simulate.io.numbers import numbers


@dataclass(frozen=True)
class Stats:
    """Least, mean and greatest of the finite elements (None: there are none), how many are NaN
    or infinite, and a hash of the bytes.
    """

    minimum: float | None
    mean: float | None
    maximum: float | None
    nan: int
    inf: int
    sha256: str


def stats_of(stored: NDArray[Any], dtype: DType) -> Stats:
    """The figures of an array in the storage type of `dtype`."""
    hash = sha256(np.ascontiguousarray(stored).data).hexdigest()
    values = numbers(stored, dtype)
    nan = int(np.count_nonzero(np.isnan(values)))
    inf = int(np.count_nonzero(np.isinf(values)))
    finite = values[np.isfinite(values)] if nan or inf else values.reshape(-1)
    if not finite.size:
        return Stats(None, None, None, nan, inf, hash)
    return Stats(float(finite.min()), float(finite.mean()), float(finite.max()), nan, inf, hash)
