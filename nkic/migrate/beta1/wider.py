"""Operands with one partition, which Beta 1 broadcast over those of the other operand.

`nl.add(a, b)` of (128, 512) and (1, 512) becomes `nl.add(a, nl.broadcast_to(b, (128, 512)))`.
Source: NKI's documentation up to SDK 2.26, nki.language.add.
"""

from __future__ import annotations

from collections.abc import Mapping

import libcst as cst

from nkic.ir.tensors import View
from nkic.language.versions.rewritten import REPEATED
from nkic.machine.operands import Row
from nkic.migrate.arguments import find, replaced
from nkic.migrate.beta1.indices import Indices, code
from nkic.migrate.sheet import Sheet

BINARY = tuple(
    f"nki.language.{name}"
    for name in ("add", "subtract", "multiply", "divide", "maximum", "minimum", "power")
)


class Wider:
    """Writes the operands of such calls."""

    def __init__(
        self, sheet: Sheet, indices: Indices, shapes: Mapping[str, frozenset[tuple[int, ...]]]
    ) -> None:
        self.sheet = sheet
        self.indices = indices
        self.shapes = shapes

    def written(self, old: cst.Call, new: cst.Call) -> cst.Call:
        """Return the call with equally many partitions in both operands."""
        if self.sheet.name_of(old.func) not in BINARY or len(old.args) < 2:
            return new
        shapes = [self._shape(arg.value) for arg in old.args[:2]]
        if None in shapes or not all(isinstance(arg.value, cst.Name) for arg in new.args[:2]):
            return new
        first, second = (sizes or () for sizes in shapes)
        if len(first) != 2 or len(second) != 2 or first[0] == second[0]:
            return new
        shape = tuple(map(max, first, second))
        function = self.sheet.of_module("nki.language", "broadcast_to")
        text = cst.parse_expression(str(shape))
        position = 0 if first[0] == 1 else 1
        args = list(new.args)
        value = cst.Call(function, [cst.Arg(args[position].value), cst.Arg(text)])
        args[position] = args[position].with_changes(value=value)
        return new.with_changes(args=args)

    def repeated(self, row: Row, old: cst.Call, new: cst.Call) -> cst.Call:
        """Broadcast the operands of an instruction that Beta 1 broadcast along dimensions of one
        element.
        """
        instructions = self.sheet.facts.instructions.get(self.sheet.spot(old), ())
        for operand in REPEATED.get(row.name, ()):
            views = [
                v
                for instruction in instructions
                if isinstance(v := instruction.operand(operand), View)
            ]
            shapes = {view.shape for view in views}
            arg = find(new, row.parameters[1:], operand)
            if arg is None or len(shapes) != 1 or not all(map(_is_repeated, views)):
                continue
            if not isinstance(arg.value, cst.Name | cst.Subscript) or "broadcast" in code(arg):
                continue
            function = self.sheet.of_module("nki.language", "broadcast_to")
            shape = cst.parse_expression(str(shapes.pop()))
            value = cst.Call(function, [cst.Arg(arg.value), cst.Arg(shape)])
            new = replaced(new, arg, arg.with_changes(value=value))
        return new

    def _shape(self, value: cst.BaseExpression) -> tuple[int, ...] | None:
        """Return the only shape of a tile of this name; None if there are several."""
        if not isinstance(value, cst.Name):
            return None
        tensors = self.sheet.facts.tensors
        calls = (expression for _, expression in self.indices.definitions(value))
        made_shapes = {
            tensor.shape for call in calls for tensor in tensors.get(self.sheet.spot(call), ())
        }
        shapes = made_shapes or self.shapes.get(value.value, frozenset())
        return next(iter(shapes)) if len(shapes) == 1 else None


def _is_repeated(view: View) -> bool:
    """Whether some dimension repeats the same element."""
    return any(not s and n > 1 for s, n in zip(view.strides, view.shape, strict=True))
