"""Calls with `mask=`: their operands reduced to the elements that the mask selects."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import libcst as cst

from nkic.ir.program import Instruction
from nkic.ir.tensors import View
from nkic.migrate.arguments import keyword_of
from nkic.migrate.beta1.blocks import Blocks
from nkic.migrate.beta1.indices import Indices, added, code, index_values
from nkic.migrate.beta1.masks import Mask
from nkic.migrate.beta1.slices import NotSlices, is_indexed, sliced, sliced_or_ap, subscript
from nkic.migrate.sheet import Sheet

Shapes = Mapping[str, frozenset[tuple[int, ...]]]


def _operands(instructions: Sequence[Instruction]) -> Shapes:
    """Return the operand shapes of a call's instructions, by tensor name."""
    by_name: dict[str, set[tuple[int, ...]]] = {}
    for instruction in instructions:
        views = (view for view in instruction.operands if isinstance(view, View))
        for view in views:
            by_name.setdefault(view.tensor.name, set()).add(view.shape)
    return {name: frozenset(shapes) for name, shapes in by_name.items()}


def shapes_by_name(sheet: Sheet) -> Shapes:
    """Return the evaluated shapes of the tiles, by name."""
    by_name: dict[str, set[tuple[int, ...]]] = {}
    for tensors in sheet.facts.tensors.values():
        for tensor in tensors:
            by_name.setdefault(tensor.name, set()).add(tensor.shape)
    return {name: frozenset(shapes) for name, shapes in by_name.items()}


class Cutter:
    """Reduces the operands of one masked call."""

    def __init__(
        self,
        indices: Indices,
        blocks: Blocks,
        shapes: Shapes,
        mask: Mask,
        instructions: Sequence[Instruction],
        order: Callable[[cst.Subscript], Sequence[int]],
    ) -> None:
        self.order = order
        self.indices = indices
        self.blocks = blocks
        self.tile_shapes = shapes
        self.shapes = {**shapes, **_operands(instructions)}
        self.limits = mask.limits
        self.condition = mask.condition

    def call(self, old: cst.Call, new: cst.Call) -> cst.Call:
        """Return the call without its mask, on the selected elements. Raises `NotSlices`."""
        pairs = zip(old.args, new.args, strict=True)
        args = [
            now.with_changes(value=self.operand(was.value, now.value))
            for was, now in pairs
            if keyword_of(was) != "mask"
        ]
        args[-1] = args[-1].with_changes(comma=new.args[-1].comma)
        return new.with_changes(args=args)

    def operand(self, old: cst.BaseExpression, new: cst.BaseExpression) -> cst.BaseExpression:
        """Return one operand, reduced; numbers and the like are unchanged."""
        if isinstance(old, cst.Subscript) and is_indexed(self.indices, old):
            return self.indexed(old)
        if not self.limits:
            return new
        if isinstance(old, cst.Name) and (gathered := self.gathered(old)) is not None:
            return self.indexed(gathered)
        if isinstance(old, cst.Name) and self.is_tile(old):
            part = self.part(self.shapes.get(old.value) or self.full())
            return cst.parse_expression(f"{old.value}[{part}]") if part else new
        if isinstance(old, cst.Subscript):
            return self.sliced(old)
        if isinstance(old, cst.BinaryOperation | cst.Call):
            return self.expression(old, new)
        return new

    def indexed(self, old: cst.Subscript) -> cst.BaseExpression:
        """Reduce `t[i_p, i_f]`."""
        value = old.value
        if self.blocks.count(old):
            return self.blocks.indexed(old, value, sliced(self.indices, old, self.limits))
        texts = sliced_or_ap(self.indices, old, self.limits, self.order)
        if isinstance(texts, str):
            return cst.parse_expression(f"{code(value)}{texts}")
        return subscript(value, texts)

    def gathered(self, name: cst.Name) -> cst.Subscript | None:
        """Return the value of a name if it is rows gathered by a tile: a part of it is gathered by
        a part of the tile.

        Raises `NotSlices` if the value may have changed.
        """
        definition = self.indices.definition(name)
        value = definition[1] if definition is not None and definition[0] < 0 else None
        if not isinstance(value, cst.Subscript) or not is_indexed(self.indices, value):
            return None
        if not any(self.indices.is_tile(number) for number in index_values(value)):
            return None
        if not self.indices.is_same(value, name):
            raise NotSlices("its rows are given by a tile that changes before its use")
        return value

    def expression(self, old: cst.BaseExpression, new: cst.BaseExpression) -> cst.BaseExpression:
        """Compute the whole expression, and use a part of it."""
        tensors = self.indices.sheet.tensors(old)
        if not tensors:
            return new  # a number
        part = self.part(frozenset(tensor.shape for tensor in tensors))
        if not part:
            return new
        text = code(new)
        whole = text if isinstance(new, cst.Call | cst.Name) else f"({text})"
        return cst.parse_expression(f"{whole}[{part}]")

    def sliced(self, old: cst.Subscript) -> cst.BaseExpression:
        """Reduce `t[k, :, 0:512]`, whose slices are the axes of the mask."""
        ranks = {axis.rank for axis in self.limits}
        parts = [element.slice for element in old.slice]
        axes = [n for n, part in enumerate(parts) if isinstance(part, cst.Slice)]
        if ranks != {len(axes)} or any(isinstance(n, cst.Ellipsis) for n in index_values(old)):
            raise NotSlices("a tile of the masked call has other dimensions than the mask")
        texts = [code(element).rstrip(", ") for element in old.slice]
        for axis, (low, high) in self.limits.items():
            place = axes[axis.place]
            texts[place] = self._cut(old, parts[place], place, low, high)
        return self.blocks.indexed(old, old.value, texts)

    def _cut(self, old: cst.Subscript, part: cst.BaseSlice, dim: int, low: str, high: str) -> str:
        assert isinstance(part, cst.Slice)
        if part.step is not None:
            raise NotSlices("a tile of the masked call is sliced with a step")
        start = code(part.lower) if part.lower is not None else "0"
        if part.upper is not None:
            if code(part.upper) == added(start, "1"):
                return f"{start}:{code(part.upper)}"
        elif isinstance(old.value, cst.Name):
            shapes = self.tile_shapes.get(old.value.value, frozenset())
            if any(len(shape) > dim and shape[dim] == 1 for shape in shapes):
                return ":"
        return f"{added(start, low)}:{added(start, high)}"

    def target(
        self, old: cst.BaseAssignTargetExpression, new: cst.BaseAssignTargetExpression
    ) -> cst.BaseAssignTargetExpression:
        """Return the assignment target, reduced; a plain name is unchanged. Raises `NotSlices`."""
        if not isinstance(old, cst.Subscript) or not isinstance(new, cst.Subscript):
            return new
        if is_indexed(self.indices, old):
            reduced = self.indexed(old)
            if not isinstance(reduced, cst.Subscript):
                reduced = cst.parse_expression(f"{code(reduced)}[...]")
            assert isinstance(reduced, cst.Subscript)
            return reduced
        if not self.limits:
            return new
        is_whole = len(old.slice) == 1 and code(old.slice[0].slice) == "..."
        if not is_whole or not isinstance(old.value, cst.Name):
            reduced = self.sliced(old)
            assert isinstance(reduced, cst.Subscript)
            return reduced
        part = self.part(self.shapes.get(old.value.value) or self.full())
        return subscript(new.value, [part]) if part else new

    def is_tile(self, name: cst.Name) -> bool:
        """Whether the evaluation made a tile of this name, or a call or an operator assigned it."""
        makers = cst.Call | cst.Subscript | cst.BinaryOperation
        values = (value for _, value in self.indices.definitions(name))
        return name.value in self.shapes or any(isinstance(value, makers) for value in values)

    def full(self) -> frozenset[tuple[int, ...]]:
        """Return the shape of a tile that has every element of the mask's axes."""
        return frozenset({(2,) * max(axis.rank for axis in self.limits)})

    def part(self, shapes: frozenset[tuple[int, ...]]) -> str:
        """Return the slices of a tile that the mask selects: "" for all of it. Raises
        `NotSlices`.
        """
        if not self.limits:
            return ""
        ranks = {axis.rank for axis in self.limits}
        shapes = frozenset(shape for shape in shapes if {len(shape)} == ranks)
        if not shapes:
            raise NotSlices("a tile of the masked call has other dimensions than the mask")
        by_place = {axis.place: ":".join(limit) for axis, limit in self.limits.items()}
        texts = [
            by_place[dim] if dim in by_place and self._is_long(shapes, dim) else ":"
            for dim in range(ranks.pop())
        ]
        while texts and texts[-1] == ":":
            texts.pop()
        return ", ".join(texts)

    def _is_long(self, shapes: frozenset[tuple[int, ...]], dim: int) -> bool:
        sizes = {shape[dim] == 1 for shape in shapes}
        if len(sizes) != 1:
            raise NotSlices("a tile of the masked call has one element only in some iterations")
        return not sizes.pop()
