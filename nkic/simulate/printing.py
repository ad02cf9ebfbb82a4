"""What a program prints while it runs (`nl.device_print`).

On the device the runtime writes such tensors to a debug stream. Here they are kept with their
values, in the order in which the program prints them, up to a limit: a loop may print for ever.
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
SHOWN = 64  # elements of a tensor that are all shown


class Printed(NamedTuple):
    """One print: its string, and the tensor then, in the storage type of its element type."""

    core: int
    prefix: str
    dtype: DType
    values: NDArray[np.generic]

    @property
    def text(self) -> str:
        """The values for readers: those at the ends of each dimension of a large tensor."""
        return np.array2string(
            self._numbers(), max_line_width=100, precision=6, threshold=SHOWN, edgeitems=3
        )

    def _numbers(self) -> NDArray[np.generic]:
        if self.dtype.element is not None:
            return unpack(self.values, self.dtype)
        return decode(self.values, self.dtype) if self.dtype.is_float else self.values


@dataclass
class Prints:
    """Those of one run. `left_out` came after the limit was reached."""

    kept: list[Printed] = field(default_factory=list)
    left_out: int = 0
    _bytes: int = 0

    def add(self, core: int, prefix: str, dtype: DType, values: NDArray[np.generic]) -> None:
        """Keeps a print with a copy of the values."""
        if len(self.kept) >= MAX_PRINTS or self._bytes + values.nbytes > MAX_BYTES:
            self.left_out += 1
            return
        self._bytes += values.nbytes
        self.kept.append(Printed(core, prefix, dtype, np.array(values)))

    def clear(self) -> None:
        """As before the run."""
        self.kept.clear()
        self.left_out = self._bytes = 0
