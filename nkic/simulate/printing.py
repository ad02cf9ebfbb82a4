"""The output of `nl.device_print` while a program runs.

On the device the runtime writes such tensors to a debug stream. Here they are kept with their
values, in order, up to a limit, since a loop may print forever.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nkic.machine.codecs import decode, unpack
from nkic.machine.dtypes import DType

MAX_BYTES = 64 << 20
MAX_PRINTS = 10_000
SHOWN = 64  # elements of a tensor that is shown in full


class Printed(NamedTuple):
    """One print: its string, and the tensor in the storage type of its element type."""

    core: int
    prefix: str
    dtype: DType
    values: NDArray[np.generic]

    @property
    def text(self) -> str:
        """The values as text: for a large tensor, those at the ends of each dimension."""
        return np.array2string(
            self._numbers(), max_line_width=100, precision=6, threshold=SHOWN, edgeitems=3
        )

    def _numbers(self) -> NDArray[np.generic]:
        if self.dtype.element is not None:
            return unpack(self.values, self.dtype)
        return decode(self.values, self.dtype) if self.dtype.is_float else self.values


@dataclass
class Prints:
    """The prints of one run. `left_out` counts those after the limit."""

    kept: list[Printed] = field(default_factory=list)
    left_out: int = 0
    _bytes: int = 0

    def add(self, core: int, prefix: str, dtype: DType, values: NDArray[np.generic]) -> None:
        """Keep a print with a copy of the values."""
        if len(self.kept) >= MAX_PRINTS or self._bytes + values.nbytes > MAX_BYTES:
            self.left_out += 1
            return
        self._bytes += values.nbytes
        self.kept.append(Printed(core, prefix, dtype, np.array(values)))

    def clear(self) -> None:
        """Reset to the state before the run."""
        self.kept.clear()
        self.left_out = self._bytes = 0
