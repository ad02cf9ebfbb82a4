"""The place where a tensor with block dimensions can be made as a tile: inside the loops that count
them.

`t = nl.zeros((n, nl.par_dim(128), m))` before `for i in range(n):`, with all uses `t[i, …]` in that
loop, becomes a tile of (128, m) that each iteration makes for itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import libcst as cst

from nkic.migrate.sheet import Sheet
from nkic.migrate.tree import names_set, walk


class Place(NamedTuple):
    """The statement before which the tile is made, and the block dimensions that vanish."""

    before: cst.CSTNode
    gone: frozenset[int]


def place_of(
    sheet: Sheet, made: cst.CSTNode, uses: Sequence[cst.Subscript], count: int
) -> Place | None:
    """Return the innermost place that all uses allow; None if the tensor stays where it is made."""
    chains = [_loops(sheet, use, made) for use in uses]
    inner: cst.For | None = None
    gone: set[int] = set()
    for loops in zip(*chains, strict=False):
        loop = loops[0]
        dim = _dimension(loop, uses, count)
        if any(one is not loop for one in loops) or dim is None or dim in gone:
            break
        gone.add(dim)
        inner = loop
    if inner is None or not isinstance(inner.body, cst.IndentedBlock):
        return None
    around = {id(p) for use in uses for p in (use, *sheet.parents(use))}
    first = next(statement for statement in inner.body.body if id(statement) in around)
    return Place(first, frozenset(gone))


def _loops(sheet: Sheet, use: cst.CSTNode, node: cst.CSTNode) -> list[cst.For]:
    """Return the loops around a use but not around the definition, the outermost first."""
    outside = {id(one) for one in sheet.parents(node)}
    inside = [one for one in sheet.parents(use) if id(one) not in outside]
    if any(isinstance(one, cst.FunctionDef | cst.While | cst.Lambda) for one in inside):
        return []
    return [one for one in reversed(inside) if isinstance(one, cst.For)]


def _dimension(loop: cst.For, uses: Sequence[cst.Subscript], count: int) -> int | None:
    """Return the block dimension in which every use has the loop's counter, if nothing changes
    that.
    """
    name = loop.target.value if isinstance(loop.target, cst.Name) else ""
    if any(name in names_set(node) for node in walk(loop.body)):
        return None
    found = [
        {place for place, element in enumerate(use.slice[:count]) if _names(element) == name}
        for use in uses
    ]
    return min(set.intersection(*found), default=None)


def _names(element: cst.SubscriptElement) -> str:
    part = element.slice
    value = part.value if isinstance(part, cst.Index) else None
    return value.value if isinstance(value, cst.Name) else ""
