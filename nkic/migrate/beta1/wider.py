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
from nkic.migrate.arguments import find, with_value
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
        operand = new.args[0 if first[0] == 1 else 1]
        return self._broadcast(new, operand, tuple(map(max, first, second)))

    def repeated(self, row: Row, old: cst.Call, new: cst.Call) -> cst.Call:
        """Broadcast the operands of an instruction that Beta 1 broadcast along dimensions of one
        element.
        """
        instructions = self.sheet.instructions(old)
        for operand in REPEATED.get(row.name, ()):
            values = (instruction.operand(operand) for instruction in instructions)
            views = [value for value in values if isinstance(value, View)]
            shapes = {view.shape for view in views}
            arg = find(new, row.parameters[1:], operand)
            if arg is None or len(shapes) != 1 or not all(map(_is_repeated, views)):
                continue
            if not isinstance(arg.value, cst.Name | cst.Subscript) or "broadcast" in code(arg):
                continue
            new = self._broadcast(new, arg, shapes.pop())
        return new

    def _broadcast(self, call: cst.Call, arg: cst.Arg, shape: tuple[int, ...]) -> cst.Call:
        """Return the call with an argument broadcast to a shape."""
        function = self.sheet.nl("broadcast_to")
        text = cst.parse_expression(str(shape))
        value = cst.Call(function, [cst.Arg(arg.value), cst.Arg(text)])
        return with_value(call, arg, value)

    def _shape(self, value: cst.BaseExpression) -> tuple[int, ...] | None:
        """Return the only shape of a tile of this name; None if there are several."""
        if not isinstance(value, cst.Name):
            return None
        calls = (expression for _, expression in self.indices.definitions(value))
        evaluated = {tensor.shape for call in calls for tensor in self.sheet.tensors(call)}
        shapes = evaluated or self.shapes.get(value.value, frozenset())
        return next(iter(shapes)) if len(shapes) == 1 else None


def _is_repeated(view: View) -> bool:
    """Whether some dimension repeats the same element."""
    return any(not s and n > 1 for s, n in zip(view.strides, view.shape, strict=True))
