"""Helpers of elementwise instructions: operands of a common shape, and numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nkic.machine.operands import Row
from nkic.machine.operators import ACTIVATIONS, ALU, Activation, SummationOrder
from nkic.simulate.lost import first_index
from nkic.simulate.numerics.elementwise import ARITHMETIC
from nkic.simulate.numerics.matmul import Factor, by_identity, matmul
from nkic.simulate.numerics.reduction import reduce
from nkic.simulate.outcome import Remark, Remarks
from nkic.simulate.plans import NOT_MEASURED, Decoded
from nkic.simulate.tile import Load, Sink, Sizes, Tile, View, refined

Array = NDArray[Any]
Floats = NDArray[np.float32]
Binary = Callable[[Floats, Floats, Floats], Any]
NO_PARAMETER = np.zeros((), np.float32)  # functions with a parameter are rejected


def shape_of(decoded: Decoded, *names: str) -> Sizes | None:
    """Return free dimensions that the tiles among these operands can share without a copy."""
    operands = [decoded.operands[name] for name in names]
    return refined(tuple([tile.sizes for tile in operands if type(tile) is Tile]))


def result(decoded: Decoded, sizes: Sizes | None = None) -> Sink:
    """Return a sink for writing dst element by element.

    All operands are read before any is overwritten: if dst partially overlaps one of them, it is
    written at the end (assumed; docs/fidelity.md).
    """
    dst = decoded.tile("dst")
    return dst.sink(sizes, buffered=dst.straddles(decoded.tiles()))


def vector(decoded: Decoded, name: str, sizes: Sizes | None, default: float = 0.0) -> Load:
    """Return a function that loads a number, or one element per partition, for broadcasting.

    The result broadcasts to (partitions, *sizes).
    """
    tile = decoded.maybe(name)
    if tile is not None:
        return tile.load((1,) * len(sizes or (1,)))
    number = np.array(decoded.number(name, default), np.float32)
    return lambda: number


def binary(op: str, reverse: bool) -> Binary:
    """Return the arithmetic operator as f(a, b, out), with operands swapped if `reverse`."""
    function = ARITHMETIC[op]
    return (lambda a, b, out: function(b, a, out)) if swaps(op, reverse) else function


def swaps(op: str, reverse: bool) -> bool:
    """Return whether `reverse` has an effect: unary operators always apply to the data."""
    return reverse and ALU[op].arity == 2


class Stage(NamedTuple):
    """One operator of elementwise arithmetic, with the name of its second operand."""

    op: str
    operand: str
    reverse: bool


def stages_of(row: Row, attributes: Mapping[str, Any]) -> list[Stage]:
    return [
        Stage(attributes[op], operand, bool(reverse) and attributes[reverse])
        for op, operand, reverse in row.stages
        if attributes[op] is not None
    ]


def is_bitvec(op: str) -> bool:
    return ALU[op].group == "bitvec"


def words(tile: Tile, sizes: Sizes) -> View:
    """Return a function that views a raw tile as unsigned integers, (partitions, *sizes)."""
    kind, view = np.dtype(f"u{tile.dtype.size}"), tile.seen_as(sizes)
    return lambda: view().view(kind)


def all_int32(decoded: Decoded) -> bool:
    """Return whether every tile is int32 or uint32, so that integer arithmetic is exact."""
    return all(tile.dtype.name in ("int32", "uint32") for tile in decoded.tiles())


# ---- Sums in the requested order, with a remark if "exact" hides an overflow --------------------

_SUMS = frozenset({"add", "subtract", "average"})
_GREATEST = float(np.finfo(np.float32).max)

# A sum of squares below this shows that no magnitude exceeds 2^64, so that no partial sum can
# overflow float32, and takes a few microseconds. A NaN, an infinity or a large number exceed it.
_SMALL = 2.0**128


class Reduction:
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
        elif self._watches:
            terms = values.size / out.size if self.op == "average" else 1
            if terms**2 * _squares(out) < _CANCELS**2 * squares:
                sequential = np.empty_like(out)
                reduce(self.op, values, sequential, keep, "float32")
                off = sequential - out
                lost = np.abs(off) > _LOST * np.abs(out).max()
                _add_cancelled(self._remarks, self._row, lost, out, off)


class Product:
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
        squares = _squares(left) * _squares(right)
        if squares > _GREATEST**2:
            self._compare_orders(left, right)
        matmul(left, right, out, accumulate, self.order)
        if squares <= _GREATEST**2 and _may_cancel(out, _CANCELS**2 * squares):
            self._note_cancelled(left, right, out)

    def _compare_orders(self, left: Factor, right: Factor) -> None:
        exact, sequential = (np.empty((left.shape[1], right.shape[1]), np.float32) for _ in "12")
        matmul(left, right, exact)
        matmul(left, right, sequential, order="float32")
        _compare(self._remarks, self._row, exact, sequential)

    def _note_cancelled(self, left: Factor, right: Factor, out: Floats) -> None:
        """Remark on rows and columns of which additions in float32 would lose `_LOST` or more."""
        sizes = np.abs(out)
        across, down = sizes.max(axis=1, keepdims=True), sizes.max(axis=0, keepdims=True)
        norms = [np.sqrt(np.einsum("ij,ij->j", one, one)) for one in (left, right)]
        rows = across[:, 0] < _CANCELS * norms[0] * norms[1].max()
        columns = down[0] < _CANCELS * norms[1] * norms[0].max()
        if not (rows.any() or columns.any()):
            return
        exact: Array = np.empty(out.shape)
        sequential = np.empty_like(out)
        matmul(left, right, exact)
        matmul(left, right, sequential, order="float32")
        off = sequential - exact
        shares = np.abs(off)
        lost = np.zeros(out.shape, np.bool_)
        for small, greatest, axis in ((rows[:, None], across, 1), (columns, down, 0)):
            found = small & (shares > _LOST * greatest)
            if np.count_nonzero(found.any(axis=axis)) == 1:  # which may be small by chance
                found &= shares > _LOST_ALONE * greatest
            lost |= found
        _add_cancelled(self._remarks, self._row, lost, out, off)


# Where the results of a row or column are this much smaller than its terms may be, float32 leaves
# them 10 of its 24 bits. By chance it is 2^-4 for 128 terms.
_CANCELS = 2.0**-14
_LOST = 0.01  # of the greatest result of a row or column: less than what bfloat16 rounds
# One of 100,000 sums of random numbers loses that much by chance, so that one row or column alone,
# such as a product with one vector, must lose more.
_LOST_ALONE = 0.5
_PROBES = 8  # rows and columns that are looked at first


def _may_cancel(out: Array, squares: float) -> bool:
    """Return whether in some row or column no element may have a square of `squares`, by the
    elements in a few columns or rows in the middle.
    """
    row, column = (max(size - _PROBES, 0) // 2 for size in out.shape)
    rows, columns = out[:, column : column + _PROBES], out[row : row + _PROBES]
    least: Callable[[Array], Any] = np.minimum.reduce
    across, down = np.vecdot(rows, rows), np.add.reduce(np.square(columns))
    return bool(least(across) < squares * rows.shape[1] or least(down) < squares * len(columns))


def _add_cancelled(remarks: Remarks, row: str, lost: Array, out: Array, off: Array) -> None:
    count = int(np.count_nonzero(lost))
    if count:
        sums = "1 sum is" if count == 1 else f"{count:,} sums are"
        text = (
            f"{row}: {sums} what remains of terms that cancel; the first, at {first_index(lost)} "
            f"of the result, is {float(out[lost][0]):.8g} here, and rounding every sum to float32 "
            f"on the way changes it by {abs(float(off[lost][0])):.8g}"
        )
        help = "subtract first what the terms have in common, and add the small ones"
        remarks.add(Remark("hidden-cancellation", text, help, count))


def _squares(values: Array) -> float:
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


# ---- Remarks, at run time, on behaviour that differs on a device --------------------------------

Watch = Callable[[Floats], None]


def in_range(decoded: Decoded) -> Watch | None:
    """Return a check for elements outside the valid range of `op`, or None if it is unbounded."""
    function, remarks = ACTIVATIONS[decoded.attributes["op"]], decoded.state.remarks
    if (function.low, function.high) == (-inf, inf):
        return None
    low, high, row = np.float32(function.low), np.float32(function.high), decoded.row.name

    def watch(values: Floats) -> None:
        sizes = np.abs(values) if function.by_magnitude else values
        if sizes.min() >= low and sizes.max() <= high:
            return
        outside = (sizes < low) | (sizes > high)  # a NaN is neither
        count = int(np.count_nonzero(outside))
        if count:
            first = float(values[outside][0])
            remarks.add(_outside(f"{row}: {_counted(count)}", function, first, count))

    return watch


def _counted(count: int) -> str:
    return "1 element is" if count == 1 else f"{count:,} elements are"


def _outside(text: str, function: Activation, first: float, count: int) -> Remark:
    size = "whose magnitude must be" if function.by_magnitude else "which must be"
    valid_range = f"from {_power(function.low)} to {_power(function.high)}"
    return Remark(
        "outside-valid-range",
        f"{text} outside the range of nl.{function.name}, {size} {valid_range}; the first is "
        f"{first:.8g}",
        "clip the elements first, or use a function that is valid for them: the device's result "
        "is invalid there",
        count,
    )


def _power(value: float) -> str:
    """Format a power of two as the documentation prints it."""
    exponent = np.log2(value) if value > 0 else 0.5
    return f"2**{exponent:.0f}" if exponent == round(exponent) else f"{value:.6g}"


def clamped(decoded: Decoded, places: NDArray[Any], last: int) -> None:
    """Remark on indices beyond the last element."""
    beyond = places > last
    count = int(np.count_nonzero(beyond))
    if count:
        decoded.state.remarks.add(
            Remark(
                "index-clamped",
                f"{decoded.row.name}: {count:,} {'index is' if count == 1 else 'indices are'} "
                f"beyond {last}, the last element; the first is {int(places[beyond][0])}",
                "keep indices below the number of elements: what a device reads there is undefined",
                count,
            )
        )


def stale_registers(row: str, uses: str, command: str) -> Remark:
    """Return the remark on accumulators that are read or added to, and were not set."""
    return Remark(
        "stale-accumulator",
        f"{row} {uses} reduce registers that no instruction has reset or loaded (`reduce_cmd` is "
        f"{command}): the result is whatever was there",
        "pass `reduce_cmd=nisa.reduce_cmd.reset_reduce` to the first instruction that reduces",
    )
