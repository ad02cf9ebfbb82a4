"""Remarks on numbers that an instruction loses: overflow, saturation, integers that are rounded.

Finding them costs little where there are none. Arithmetic and conversions signal that something was
lost (`machine.rounding.LOST`), and only then the elements are looked at. Integers of 32 bits pass
through float32 in `Tile.load` and `Tile.put` alone, so that every instruction that computes with
them is covered by these two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.base.text import grouped
from nkic.machine.codecs import LOST, decode, round_to_grid
from nkic.machine.dtypes import DType
from nkic.machine.operands import Depends, Row
from nkic.machine.operators import ALU
from nkic.simulate.numerics.elementwise import ARITHMETIC
from nkic.simulate.outcome import Remark, Remarks

Array = NDArray[Any]
Mask = NDArray[np.bool_]
EXACT = 2.0**24  # from here on, float32 does not hold every integer
SLUGS = frozenset({"inexact-integer", "becomes-not-finite", "saturated"})


def is_rounded(dtype: DType) -> bool:
    """Return whether float32 rounds some integers of the type."""
    return dtype.is_integer and dtype.size >= 4


@dataclass
class Notes:
    """Files the remarks on one operand of an instruction.

    `converts`: the instruction only converts its source to a type narrower than float32, so that
    rounding is what it is for. `whole`: it computes 32-bit integers of integers; `work` holds its
    operands and attributes while it runs, and not longer, since tiles have notes.
    """

    row: Row
    operand: str
    remarks: Remarks
    converts: bool = False
    whole: bool = False
    work: tuple[Mapping[str, Any], Mapping[str, Any]] | None = None

    def read(self, raw: Array, values: Array) -> None:
        """Note the integers of `raw` that are not in `values`, which float32 has rounded."""
        if self.converts or not values.size:
            return
        if values.max() < EXACT and values.min() > -EXACT:
            return
        lost = raw.astype(np.float64) != values.reshape(raw.shape)
        if lost.any():
            first = int(raw[lost][0])
            at = first_index(lost)
            self.add(
                "inexact-integer",
                f"reads {first} as {int(np.float32(first))}, at {at} of `{self.operand}`",
                int(np.count_nonzero(lost)),
            )

    def stored(self, values: Array, dtype: DType) -> None:
        """Note the numbers that the element type does not hold; `values` is what was computed."""
        LOST.stored = False
        if dtype.is_integer:
            whole = np.rint(values.astype(np.float64))
            lost = (whole > dtype.highest) | (whole < dtype.lowest)
            self._add_stored("saturated", values, lost, dtype)
            return
        held = round_to_grid(np.ascontiguousarray(values), dtype, np.empty_like(values, order="C"))
        finite = np.isfinite(values)
        if dtype.has_inf or dtype.has_nan:
            self._add_stored("becomes-not-finite", values, finite & ~np.isfinite(held), dtype)
        else:
            beyond = finite & (np.abs(values) > dtype.highest) & (np.abs(held) == dtype.highest)
            self._add_stored("saturated", values, beyond, dtype)

    def computed(self, values: Array, dtype: DType) -> None:
        """Note integer results that float32 may have rounded, unless they are seen to be exact.

        It is called before the results are stored, while the sources are still there.
        """
        if values.max() < EXACT and values.min() > -EXACT:
            return
        large = (np.abs(values) >= EXACT) & (values <= dtype.highest) & (values >= dtype.lowest)
        exact = _exact(self.row, *self.work) if self.work is not None and large.any() else None
        if exact is not None:
            large &= exact.reshape(values.shape) != values
        elif self.work is not None:  # a maximum, for example, is one of the sources
            for source in _read(self.row, self.work[0]):
                large &= ~np.isin(values, _doubles(source).astype(np.float32))
        if large.any():
            self.add(
                "inexact-integer",
                f"computes {int(values[large][0])} in float32, at {first_index(large)} of "
                f"`{self.operand}`",
                int(np.count_nonzero(large)),
            )

    def _add_stored(self, slug: str, values: Array, lost: Mask, dtype: DType) -> None:
        if not lost.any():
            return
        number = float(values[lost][0])
        held = decode_one(number, dtype)
        self.add(
            slug,
            f"stores {number:.8g} as {held:.8g} in {dtype.name}, whose largest number is "
            f"{dtype.highest:.8g}, at {first_index(lost)} of `{self.operand}`",
            int(np.count_nonzero(lost)),
        )

    def add(self, slug: str, text: str, count: int) -> None:
        """File a remark on `count` elements; `text` is on the first."""
        more = f", and {grouped(count - 1)} more" if count > 1 else ""
        self.remarks.add(Remark(slug, f"{self.row.name} {text}{more}", _HELP[slug], count))


_HELP = {
    "inexact-integer": "float32 holds every integer up to 2**24 only; nisa.tensor_tensor on gpsimd "
    "is exact for 32-bit integers",
    "becomes-not-finite": "scale or clip the numbers first, or use a wider type",
    "saturated": "scale the numbers to the range of the type, or use a wider one",
}


def decode_one(number: float, dtype: DType) -> float:
    """Return the value that a number has after it was stored in the type."""
    one = np.array([number], np.float32)
    return float(round_to_grid(one, dtype, np.empty_like(one))[0])


def first_index(mask: Mask) -> str:
    """Return the place of the first true element, as it is written."""
    place = np.unravel_index(int(mask.argmax()), mask.shape)
    return f"[{', '.join(str(int(i)) for i in place)}]"


# ---- the notes of an instruction ----


def note(row: Row, operands: Mapping[str, Any], remarks: Remarks) -> None:
    """Give the tiles of an instruction the notes that file remarks on them."""
    tiles = {name: value for name, value in operands.items() if hasattr(value, "notes")}
    written = [tiles[o.name] for o in row.operands if o.name in tiles and o.access.writes]
    converts = row.copies and all(t.dtype.is_float and t.dtype.size < 4 for t in written)
    whole = bool(_read(row, operands)) and all(
        _is_whole(value) for name, value in operands.items() if value not in written
    )
    for name, tile in reversed(tiles.items()):
        computes = whole and tile in written and is_rounded(tile.dtype) and not row.copies
        tile.notes = Notes(row, name, remarks, converts, computes)


def _read(row: Row, operands: Mapping[str, Any]) -> list[Any]:
    values = [operands.get(o.name) for o in row.operands if o.access.reads]
    return [value for value in values if hasattr(value, "notes")]


def _is_whole(value: Any) -> bool:
    if hasattr(value, "notes"):
        return bool(value.dtype.is_integer)
    return value is None or (isinstance(value, int | float) and float(value).is_integer())


def _exact(row: Row, operands: Mapping[str, Any], attributes: Mapping[str, Any]) -> Array | None:
    """Return the result of the row's operators in float64, or None if it has none."""
    function: Callable[[str], Callable[..., Any]] = ARITHMETIC.__getitem__
    stages = [stage for stage in row.stages if attributes[stage[0]] is not None]
    if not stages or not all(attributes[op] in ARITHMETIC for op, _, _ in stages):
        return None
    result = _doubles(operands[row.first])
    for attribute, name, reverse in stages:
        op, other = attributes[attribute], np.broadcast_to(_doubles(operands[name]), result.shape)
        swaps = bool(reverse) and attributes[reverse] and ALU[op].arity == 2
        left, right = (other, result) if swaps else (result, other)
        result = np.empty(result.shape)
        function(op)(left, right, result)
    return result


def _doubles(value: Any) -> Array:
    """Return an operand in float64, (partitions, elements) for a tile."""
    if not hasattr(value, "notes"):
        return np.array(float(value or 0))
    doubles: Array = value.window.reshape(value.partitions, -1).astype(np.float64)
    return doubles


# ---- infinity and NaN that arithmetic makes ----


def watched(
    step: Callable[[], None],
    row: Row,
    operands: Mapping[str, Any],
    attributes: Mapping[str, Any],
    remarks: Remarks,
) -> Callable[[], None]:
    """Return the step with a look at its results wherever its arithmetic made infinity or NaN.

    Elements that follow from infinity or NaN among the sources are left out; sources that the step
    overwrites are no longer there to tell.
    """
    tiles = [(o, operands[o.name]) for o in row.operands if hasattr(operands.get(o.name), "notes")]
    written = [(o.name, t) for o, t in tiles if o.access.writes and t.dtype.is_float]
    computing = [tile.notes for _, tile in tiles if tile.notes is not None and tile.notes.whole]
    if computing:
        return partial(_with_work, step, computing, (operands, attributes))
    if not written or (row.moves and all(t.dtype is written[0][1].dtype for _, t in tiles)):
        return step
    read = _read(row, operands)

    def run() -> None:
        LOST.computed = False
        step()
        if LOST.computed:
            for name, tile in written:
                _look(row, name, tile, read, remarks)

    return run


def _with_work(
    step: Callable[[], None],
    notes: Sequence[Notes],
    work: tuple[Mapping[str, Any], Mapping[str, Any]],
) -> None:
    """Run a step whose notes may need its operands."""
    for one in notes:
        one.work = work
    step()
    for one in notes:
        one.work = None


def _look(row: Row, name: str, tile: Any, read: Sequence[Any], remarks: Remarks) -> None:
    """File a remark on infinity or NaN among the results, unless another one tells the cause."""
    if remarks.fresh:
        return
    values = _values(tile)
    made = ~np.isfinite(values)
    for source in read:
        if made.any() and source is not tile and not source.overlaps(tile):
            made &= _follows(row, np.isfinite(_values(source)), made.shape)
    if made.any():
        number, count = float(values[made][0]), int(np.count_nonzero(made))
        text = f"computes {'NaN' if np.isnan(number) else f'{number:g}'} of numbers, at "
        Notes(row, name, remarks).add(
            "becomes-not-finite", f"{text}{first_index(made)} of `{name}`", count
        )


def _values(tile: Any) -> Array:
    """Return the numbers in a tile, (partitions, elements)."""
    window = tile.window
    values = window if tile.is_float32 else decode(np.ascontiguousarray(window), tile.dtype)
    return values.reshape(tile.partitions, -1)


def _follows(row: Row, finite: Mask, shape: tuple[int, ...]) -> Mask:
    """Return which results depend on finite elements of a source alone."""
    if row.depends is Depends.ELEMENTWISE and finite.size == np.prod(shape):
        return finite.reshape(shape)
    if row.depends in (Depends.ELEMENTWISE, Depends.BY_PARTITION) and len(finite) == shape[0]:
        return np.broadcast_to(finite.all(axis=1, keepdims=True), shape)
    return np.full(shape, bool(finite.all()))
