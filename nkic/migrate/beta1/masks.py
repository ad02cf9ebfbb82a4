"""Masks that are bounds: `mask=(i_p < rows) & (i_f + k * 512 < columns)` → extents of the axes."""

from __future__ import annotations

import libcst as cst

from nkic.migrate.beta1.indices import Axis, Indices, added, code, less
from nkic.migrate.beta1.slices import NotSlices

_MIRRORED = {cst.GreaterThan: cst.LessThan, cst.GreaterThanEqual: cst.LessThanEqual}


def limits_of(indices: Indices, node: cst.BaseExpression) -> dict[Axis, str]:
    """How many elements of each axis a mask leaves. Raises `NotSlices` where it is no bound."""
    if isinstance(node, cst.Name):
        return limits_of(indices, _definition(indices, node))
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitAnd):
        return _both(limits_of(indices, node.left), limits_of(indices, node.right))
    if isinstance(node, cst.BooleanOperation) and isinstance(node.operator, cst.And):
        return _both(limits_of(indices, node.left), limits_of(indices, node.right))
    if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        return _compared(indices, node)
    raise NotSlices(f"the mask `{code(node)}` is no bound of an axis")


def _definition(indices: Indices, name: cst.Name) -> cst.BaseExpression:
    found = indices.definitions(name)
    if len(found) != 1 or found[0][0] >= 0:
        raise NotSlices(f"the mask `{name.value}` is set in several places")
    return found[0][1]


def _both(left: dict[Axis, str], right: dict[Axis, str]) -> dict[Axis, str]:
    both = {axis: f"min({left[axis]}, {right[axis]})" for axis in left.keys() & right.keys()}
    return left | right | both


def _compared(indices: Indices, node: cst.Comparison) -> dict[Axis, str]:
    left, operator, right = node.left, node.comparisons[0].operator, node.comparisons[0].comparator
    if type(operator) in _MIRRORED:
        left, right = right, left
        operator = _MIRRORED[type(operator)]()
    index, bound = indices.of(left), indices.of(right)
    is_bound = isinstance(operator, cst.LessThan | cst.LessThanEqual)
    plain = index is not None and [one for one, _ in index.parts] == ["1"]
    if index is None or bound is None or bound.parts or not plain or not is_bound:
        raise NotSlices(f"the mask `{code(node)}` is no upper bound of an axis")
    axis = index.parts[0][1]
    end = bound.base if isinstance(operator, cst.LessThan) else added(bound.base, "1")
    return {axis: f"min({axis.count}, {less(end, added(index.base, axis.start))})"}
