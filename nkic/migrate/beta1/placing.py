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
    sheet: Sheet, maker: cst.CSTNode, uses: Sequence[cst.Subscript], count: int
) -> Place | None:
    """Return the innermost place that all uses allow; None if the tensor stays where it is made."""
    chains = [_loops(sheet, use, maker) for use in uses]
    inner: cst.For | None = None
    counted_dims: set[int] = set()
    for loops in zip(*chains, strict=False):
        loop = loops[0]
        dim = _dimension(loop, uses, count)
        is_shared = all(loop_of_use is loop for loop_of_use in loops)
        if not is_shared or dim is None or dim in counted_dims:
            break
        counted_dims.add(dim)
        inner = loop
    if inner is None or not isinstance(inner.body, cst.IndentedBlock):
        return None
    around = {id(p) for use in uses for p in (use, *sheet.parents(use))}
    first = next(statement for statement in inner.body.body if id(statement) in around)
    return Place(first, frozenset(counted_dims))


def _loops(sheet: Sheet, use: cst.CSTNode, node: cst.CSTNode) -> list[cst.For]:
    """Return the loops around a use but not around the definition, the outermost first."""
    outside = {id(parent) for parent in sheet.parents(node)}
    inside = [parent for parent in sheet.parents(use) if id(parent) not in outside]
    if any(isinstance(parent, cst.FunctionDef | cst.While | cst.Lambda) for parent in inside):
        return []
    return [parent for parent in reversed(inside) if isinstance(parent, cst.For)]


def _dimension(loop: cst.For, uses: Sequence[cst.Subscript], count: int) -> int | None:
    """Return the block dimension in which every use has the loop's counter, if nothing changes
    that.
    """
    name = loop.target.value if isinstance(loop.target, cst.Name) else ""
    if any(name in names_set(node) for node in walk(loop.body)):
        return None
    dims = [
        {dim for dim, element in enumerate(use.slice[:count]) if _names(element) == name}
        for use in uses
    ]
    return min(set.intersection(*dims), default=None)


def _names(element: cst.SubscriptElement) -> str:
    inner = element.slice
    value = inner.value if isinstance(inner, cst.Index) else None
    return value.value if isinstance(value, cst.Name) else ""
