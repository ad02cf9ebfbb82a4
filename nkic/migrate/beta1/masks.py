"""Masks as bounds: `mask=(i_p < rows) & (i_f + k * 512 < columns)` → extents of the axes.

A mask on numbers alone, as `mask=k * 512 < columns`, is a condition of the whole call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import libcst as cst

from nkic.migrate.beta1.indices import Axis, Index, Indices, added, code, less, summed
from nkic.migrate.beta1.slices import NotSlices

_MIRRORED: dict[type[cst.BaseCompOp], type[cst.BaseCompOp]] = {
    cst.GreaterThan: cst.LessThan,
    cst.GreaterThanEqual: cst.LessThanEqual,
    cst.LessThan: cst.GreaterThan,
    cst.LessThanEqual: cst.GreaterThanEqual,
}


class Mask(NamedTuple):
    """The elements that a mask selects.

    `limits` gives, by axis, the first element and the one after the last; `conditions` must hold
    for any element to be selected.
    """

    limits: Mapping[Axis, tuple[str, str]]
    conditions: tuple[str, ...] = ()

    @property
    def condition(self) -> str:
        """The conjunction of all conditions; "" for none."""
        if len(self.conditions) < 2:
            return "".join(self.conditions)
        return " and ".join(f"({condition})" for condition in self.conditions)


def mask_of(indices: Indices, node: cst.BaseExpression) -> Mask:
    """Return the bounds of a mask. Raises `NotSlices` if it is not a bound."""
    if isinstance(node, cst.Name) and indices.is_index(node):
        return mask_of(indices, _definition(indices, node))
    if not indices.has_index(node):
        return Mask({}, _conditions(indices, node))
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.BitAnd):
        return _both(mask_of(indices, node.left), mask_of(indices, node.right))
    if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
        return _compared(indices, node)
    raise NotSlices(f"the mask `{code(node)}` is not a bound of an axis")


def _conditions(indices: Indices, node: cst.BaseExpression) -> tuple[str, ...]:
    """Return the condition of a mask on numbers."""
    if isinstance(node, cst.Name) and node.value in ("None", "True"):
        return ()
    if isinstance(node, cst.Name) and _may_be_none(indices, node):
        return (f"{node.value} is None or {node.value}",)
    if isinstance(node, cst.IfExp) and code(node.orelse) in ("None", "True"):
        return (f"not ({code(node.test)}) or ({code(node.body)})",)
    return (_inner(node),)


def _may_be_none(indices: Indices, name: cst.Name) -> bool:
    """Whether the name is an argument, or assigned from a value that may be None."""
    values = [value for _, value in indices.definitions(name)]
    return not values or any("None" in code(value) for value in values)


def _inner(node: cst.BaseExpression) -> str:
    """Return the text without parentheses around all of it."""
    return code(node.with_changes(lpar=(), rpar=())) if node.lpar else code(node)


def _definition(indices: Indices, name: cst.Name) -> cst.BaseExpression:
    definition = indices.definition(name)
    if definition is None or definition[0] >= 0:
        raise NotSlices(f"the mask `{name.value}` is set in several places")
    return definition[1]


def _both(left: Mask, right: Mask) -> Mask:
    shared = {
        axis: (
            _tighter("max", "0", left.limits[axis][0], right.limits[axis][0]),
            _tighter("min", axis.count, left.limits[axis][1], right.limits[axis][1]),
        )
        for axis in left.limits.keys() & right.limits.keys()
    }
    limits = {**left.limits, **right.limits, **shared}
    return Mask(limits, tuple(dict.fromkeys((*left.conditions, *right.conditions))))


def _tighter(function: str, neutral: str, a: str, b: str) -> str:
    bounds = [bound for bound in dict.fromkeys((a, b)) if bound != neutral]
    return f"{function}({a}, {b})" if len(bounds) == 2 else "".join(bounds) or neutral


def _compared(indices: Indices, node: cst.Comparison) -> Mask:
    left, operator, right = node.left, node.comparisons[0].operator, node.comparisons[0].comparator
    kind = type(operator)
    if kind not in _MIRRORED:
        raise NotSlices(f"the mask `{code(node)}` is not a bound of an axis")
    if not indices.has_index(left):
        left, right = right, left
        kind = _MIRRORED[kind]
    index, bound = indices.of(left), indices.of(right)
    if index is not None and bound is not None and [factor for factor, _ in index.parts] == ["-1"]:
        index, bound = _upper_bound(index, bound)
        kind = _MIRRORED[kind]
    plain = index is not None and [factor for factor, _ in index.parts] == ["1"]
    if index is None or bound is None or bound.parts or not plain:
        raise NotSlices(f"the mask `{code(node)}` is not a bound of an axis")
    axis = index.parts[0][1]
    is_upper = kind in (cst.LessThan, cst.LessThanEqual)
    exact = kind in (cst.LessThan, cst.GreaterThanEqual)
    end = less(bound.base if exact else added(bound.base, "1"), added(index.base, axis.start))
    end = summed(end) if end[0] == "-" or end[-1].isdecimal() else end
    if is_upper:
        return Mask({axis: ("0", f"min({axis.count}, {end})")})
    return Mask({axis: (end if end.isdecimal() else f"max(0, {end})", axis.count)})


def _upper_bound(index: Index, bound: Index) -> tuple[Index, Index]:
    """Rewrite `-i + a >= b` as `i <= a - b`."""
    axis = index.parts[0][1]
    return Index("0", (("1", axis),)), Index(summed(less(index.base, bound.base)))
