"""Sums in the requested order, with a remark if "exact" hides an overflow."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.operators import SummationOrder
from nkic.simulate.decode import NOT_MEASURED, Decoded
from nkic.simulate.numerics.matmul import Factor, by_identity, matmul
from nkic.simulate.numerics.reduction import reduce
from nkic.simulate.remarks import Remark, Remarks

Array = NDArray[Any]
Floats = NDArray[np.float32]
_SUMS = frozenset({"add", "subtract", "average"})
_GREATEST = float(np.finfo(np.float32).max)

# A sum of squares below this shows that no magnitude exceeds 2^64, so that no partial sum can
# overflow float32, and takes a few microseconds. A NaN, an infinity or a large number exceed it.
_SMALL = 2.0**128


class Reduction:
    """The reductions of one instruction."""

    def __init__(
        self, decoded: Decoded, op: str, measured: Mapping[str, SummationOrder] = NOT_MEASURED
    ) -> None:
        self.op = op
        self.order = decoded.order(measured)
        self._watches = self.order == "exact" and op in _SUMS
        self._row, self._remarks = decoded.row.name, decoded.state.remarks

    def __call__(self, values: Floats, out: Floats, keep: int = 1) -> None:
        """Reduce as `numerics.reduction.reduce`."""
        squares = _squares(values) if self._watches else inf
        reduce(self.op, values, out, keep, self.order, squares)
        if self._watches and not squares < _SMALL:
            sequential = np.empty_like(out)
            reduce(self.op, values, sequential, keep, "float32")
            _compare(self._remarks, self._row, out, sequential)


class Product:
    """The matrix products of one instruction."""

    def __init__(self, decoded: Decoded) -> None:
        self.order = decoded.order()
        self._row, self._remarks = decoded.row.name, decoded.state.remarks

    def __call__(self, left: Factor, right: Factor, out: Floats, accumulate: bool) -> None:
        """Multiply as `numerics.matmul.matmul`."""
        if self.order != "exact":
            matmul(left, right, out, accumulate, self.order)
            return
        if by_identity(left, right, out, accumulate):
            return
        if _squares(left) * _squares(right) > _GREATEST**2:
            self._compare_orders(left, right)
        matmul(left, right, out, accumulate, self.order)

    def _compare_orders(self, left: Factor, right: Factor) -> None:
        exact, sequential = (np.empty((left.shape[1], right.shape[1]), np.float32) for _ in "12")
        matmul(left, right, exact)
        matmul(left, right, sequential, order="float32")
        _compare(self._remarks, self._row, exact, sequential)


def _squares(values: Array) -> float:
    """Return the sum of squares, in the type of the values."""
    flat = values.reshape(-1)
    return float(np.dot(flat, flat))


def _compare(remarks: Remarks, row: str, exact: Floats, sequential: Floats) -> None:
    lost = np.isfinite(exact) & ~np.isfinite(sequential)
    count = int(np.count_nonzero(lost))
    if count:
        sums = "1 sum overflows" if count == 1 else f"{count:,} sums overflow"
        remarks.add(
            Remark(
                "hidden-overflow",
                f"{row}: {sums} float32 in between, but are finite here, where "
                f"additions are exact; the first is {float(exact[lost][0]):.8g}"
                if count > 1
                else f"{row}: {sums} float32 in between, but is "
                f"{float(exact[lost][0]):.8g} here, where additions are exact",
                "scale the numbers down; `--accumulate float32` shows the results of sequential "
                "additions in float32",
                count,
            )
        )
