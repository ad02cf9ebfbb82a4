"""Index expressions with elements of tiles, known at run time: `t[i_p, start[0, k] + i_f]`.

Later versions express them as the `scalar_offset` of an access pattern.
"""

from __future__ import annotations

from typing import NamedTuple

import libcst as cst

from nkic.migrate.beta1.indices import Index, Indices, added, code, index_values, negative
from nkic.migrate.tree import walk


class Dynamic(NamedTuple):
    """A dimension whose index contains a tile's element: the dimension, the element as a tile, and
    the rest of the sum.
    """

    dim: int
    element: str
    rest: Index


def dynamic(indices: Indices, node: cst.Subscript) -> Dynamic | None:
    """Return the run-time part of an index; None if there is none, or if it cannot be separated."""
    elements = [
        (dim, tile, element.slice.value)
        for dim, element in enumerate(node.slice)
        if isinstance(element.slice, cst.Index)
        for tile in walk(element.slice.value)
        if isinstance(tile, cst.Subscript) and _is_element(indices, tile)
    ]
    if len(elements) != 1:
        return None
    dim, tile, value = elements[0]
    index = _without(indices, value, tile)
    if index is None:
        return None
    texts = [code(item.slice) for item in tile.slice]
    slices = ", ".join(f"{text}:{added(text, '1')}" for text in texts)
    return Dynamic(dim, f"{code(tile.value)}[{slices}]", index)


def _is_element(indices: Indices, node: cst.Subscript) -> bool:
    """Whether the expression is a single element of a tile."""
    name = node.value
    if not isinstance(name, cst.Name) or not indices.is_whole(name) or not indices.is_tile(name):
        return False
    values = (value for _, value in indices.definitions(name))
    ranks = {len(tensor.shape) for value in values for tensor in indices.tensors(value)}
    numbers = [value for value in index_values(node) if not indices.has_index(value)]
    return len(numbers) == len(node.slice) and ranks == {len(node.slice)}


def _without(indices: Indices, node: cst.BaseExpression, tile: cst.Subscript) -> Index | None:
    """Return what is added to the element of a tile; None if it is not a plain sum."""
    if node is tile:
        return Index("0")
    if not any(inner is tile for inner in walk(node)):
        return indices.of(node)
    if not isinstance(node, cst.BinaryOperation):
        return None
    is_right = any(inner is tile for inner in walk(node.right))
    if not isinstance(node.operator, cst.Add) and (
        is_right or not isinstance(node.operator, cst.Subtract)
    ):
        return None
    left, right = (_without(indices, expression, tile) for expression in (node.left, node.right))
    if left is None or right is None:
        return None
    right = right if isinstance(node.operator, cst.Add) else negative(right)
    return Index(added(left.base, right.base), (*left.parts, *right.parts))
