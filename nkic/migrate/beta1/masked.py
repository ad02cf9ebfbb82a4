"""Calls with `mask=`: their operands cut to the elements that the mask leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import libcst as cst

from nkic.ir.program import Instruction
from nkic.ir.tensors import View
from nkic.migrate.arguments import word
from nkic.migrate.beta1.indices import Axis, Indices
from nkic.migrate.beta1.slices import NotSlices, is_indexed, sliced, subscript
from nkic.migrate.sheet import Sheet

Shapes = Mapping[str, frozenset[tuple[int, ...]]]
Limits = dict[Axis, str]


def _operands(made: Sequence[Instruction]) -> Shapes:
    """The shapes of the operands of a call's instructions, by the names of their tensors."""
    found: dict[str, set[tuple[int, ...]]] = {}
    for one in made:
        views = (view for view in one.operands if isinstance(view, View))
        for view in views:
            found.setdefault(view.tensor.name, set()).add(view.shape)
    return {name: frozenset(shapes) for name, shapes in found.items()}


def shapes_by_name(sheet: Sheet) -> Shapes:
    """The shapes of the tiles that the evaluation made under each name."""
    found: dict[str, set[tuple[int, ...]]] = {}
    for tensors in sheet.facts.tensors.values():
        for tensor in tensors:
            found.setdefault(tensor.name, set()).add(tensor.shape)
    return {name: frozenset(shapes) for name, shapes in found.items()}


class Cutter:
    """Cuts the operands of one masked call."""

    def __init__(
        self, indices: Indices, shapes: Shapes, limits: Limits, made: Sequence[Instruction]
    ) -> None:
        self.indices = indices
        self.shapes = {**shapes, **_operands(made)}
        self.limits = limits

    def call(self, old: cst.Call, new: cst.Call) -> cst.Call:
        """The call without its mask, on what the mask leaves. Raises `NotSlices`."""
        pairs = zip(old.args, new.args, strict=True)
        args = [
            now.with_changes(value=self.operand(was.value, now.value))
            for was, now in pairs
            if word(was) != "mask"
        ]
        args[-1] = args[-1].with_changes(comma=new.args[-1].comma)
        return new.with_changes(args=args)

    def operand(self, old: cst.BaseExpression, new: cst.BaseExpression) -> cst.BaseExpression:
        """One operand, cut; numbers and the like as they are."""
        if isinstance(old, cst.Subscript) and is_indexed(self.indices, old):
            assert isinstance(new, cst.Subscript)
            return subscript(new.value, sliced(self.indices, old, self.limits))
        if isinstance(old, cst.Name) and self.is_tile(old):
            part = self.part(self.shapes.get(old.value) or self.full())
            return cst.parse_expression(f"{old.value}[{part}]") if part else new
        if isinstance(old, cst.BinaryOperation | cst.Call | cst.Subscript):
            raise NotSlices("an operand of the masked call is an expression: give it a name")
        return new

    def target(
        self, old: cst.BaseAssignTargetExpression, new: cst.BaseAssignTargetExpression
    ) -> cst.BaseAssignTargetExpression:
        """What the call is assigned to, cut; a name gets what there is. Raises `NotSlices`."""
        if not isinstance(old, cst.Subscript) or not isinstance(new, cst.Subscript):
            return new
        if is_indexed(self.indices, old):
            return subscript(new.value, sliced(self.indices, old, self.limits))
        whole = [
            isinstance(one.slice, cst.Index) and isinstance(one.slice.value, cst.Ellipsis)
            for one in old.slice
        ]
        if whole != [True] or not isinstance(old.value, cst.Name):
            raise NotSlices("its result goes to a part of a tile that slices say")
        part = self.part(self.shapes.get(old.value.value) or self.full())
        return subscript(new.value, [part]) if part else new

    def is_tile(self, name: cst.Name) -> bool:
        """The evaluation made a tile of this name, or a call or an operator set it."""
        made = cst.Call | cst.Subscript | cst.BinaryOperation
        values = [value for _, value in self.indices.definitions(name)]
        return name.value in self.shapes or any(isinstance(one, made) for one in values)

    def full(self) -> frozenset[tuple[int, ...]]:
        """The shape of a tile that has every element of the mask's axes."""
        return frozenset({(2,) * max(axis.rank for axis in self.limits)})

    def part(self, shapes: frozenset[tuple[int, ...]]) -> str:
        """The slices of a tile that the mask leaves: "" for all of it. Raises `NotSlices`."""
        ranks = {axis.rank for axis in self.limits}
        shapes = frozenset(shape for shape in shapes if {len(shape)} == ranks)
        if not shapes:
            raise NotSlices("a tile of the masked call has other dimensions than the mask")
        by_place = {axis.place: limit for axis, limit in self.limits.items()}
        texts = [
            f"0:{by_place[dim]}" if dim in by_place and self._is_long(shapes, dim) else ":"
            for dim in range(ranks.pop())
        ]
        while texts and texts[-1] == ":":
            texts.pop()
        return ", ".join(texts)

    def _is_long(self, shapes: frozenset[tuple[int, ...]], dim: int) -> bool:
        sizes = {shape[dim] == 1 for shape in shapes}
        if len(sizes) != 1:
            raise NotSlices("a tile of the masked call has one element in some turns only")
        return not sizes.pop()
