"""The part of a box that other boxes do not cover."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from nkic.ir.overlap import Box, Cells


def first_hole(area: Box, boxes: Iterable[Box], size: int) -> str | None:
    """Return the first uncovered part of `area` as a slice, or None if all is covered.

    The innermost axis of boxes is in bytes, `size` per element.
    """
    covering = list(boxes)
    cells = Cells([area, *covering])
    if cells.count == 1:
        return None if covering else _slice(area, size)
    covered = {cell for box in covering for cell in cells[box]}
    missing = next((cell for cell in cells[area] if cell not in covered), None)
    return None if missing is None else _slice(tuple(_ranges(cells, missing)), size)


def _slice(ranges: Box, size: int) -> str:
    low, high = ranges[-1]
    shown = (*ranges[:-1], (low // size, -(-high // size)))  # bytes to elements
    return f"[{', '.join(f'{low}:{high}' for low, high in shown)}]"


def _ranges(cells: Cells, number: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of a cell, outermost axis first."""
    for axis, cuts in enumerate(cells.cuts):
        at = number // prod(cells.sizes[axis + 1 :]) % cells.sizes[axis]
        yield cuts[at], cuts[at + 1]
