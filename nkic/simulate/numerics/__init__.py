"""Operators and functions on plain arrays, without memories, engines or instructions.

Every function writes to `out` and accepts an operand as `out`. Numbers are float32 in arrays of any
layout; results depend on values alone, never on layout, threads or block sizes. docs/fidelity.md
states the rules. NumPy's warnings about overflow or NaN do not apply here: callers work inside
`quiet()`.

    elementwise  `machine.operators.ALU` and `ACTIVATIONS`; largest elements, selection, random
    reduction    sums in each order, products, maxima, mean and variance, recurrences, searches
    matmul       the tensor engine's product
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from nkic.machine.codecs import note_computed

# Elements in a ufunc's buffer for type conversion. With a larger buffer, NumPy 2.3 and later copy
# an operand that is broadcast along shorter rows, which doubles the time of a row.
_BUFFER = 1024


@contextmanager
def quiet() -> Iterator[None]:
    """Silence warnings of NaN, overflow and division by zero, and give ufuncs a small buffer.

    `machine.rounding.LOST` tells that an operation on numbers gave infinity or NaN. No result
    depends on the buffer: reductions never convert types (`reduction.py`).
    """
    with np.errstate(
        divide="call", over="call", invalid="call", under="ignore", call=note_computed
    ):
        before = np.setbufsize(_BUFFER)
        try:
            yield
        finally:
            np.setbufsize(before)
