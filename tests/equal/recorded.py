"""What the pages in tests/data/equal say of elements: checksums of all that is known of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from nkic.simulate.field.elements import Elements

PAGES = Path(__file__).parents[1] / "data/equal"


def sum_of(*arrays: Any) -> str:
    """Return a checksum of numbers: of integers as they are, of others to 27 bits."""
    found = sha256()
    for array in map(np.asarray, arrays):
        found.update(f"{array.shape}".encode())
        values = _rounded(array) if array.dtype.kind == "f" else array.astype(np.int64)
        found.update(np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes())
    return found.hexdigest()[:8]


def _rounded(values: Any) -> Any:
    part, exponent = np.frexp(values.astype(np.float64))
    rounded = np.ldexp(np.rint(part * 2.0**27), exponent - 27) + 0.0  # there is no -0
    return np.where(np.isnan(values), np.nan, rounded)


def sum_of_elements(found: Elements | None) -> str:
    if found is None:
        return "none"
    return sum_of(*found[:4], np.array(found.size, np.float64))


def listed(found: Iterable[Elements | None]) -> str:
    return " ".join(map(sum_of_elements, found))


def page(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
