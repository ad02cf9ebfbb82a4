"""Numbers that the body of a loop changes.

Beta 1 traced the body of such a loop once, so `address += size` in it gave every iteration the same
address. `range` runs the body anew for each iteration, so each iteration must start with the value
from before the loop. Source: NKI's documentation up to SDK 2.26, nki.language.affine_range.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from nkic.migrate.beta1.indices import Indices
from nkic.migrate.flow import set_by
from nkic.migrate.scopes import scope_of
from nkic.migrate.sheet import Sheet
from nkic.migrate.tree import children, walk

CARRIED = "a number that a loop changes"
_TRACED = ("nki.language.affine_range", "nki.language.sequential_range")


def is_traced(sheet: Sheet, loop: cst.For) -> bool:
    """Whether Beta 1 traced the loop's body once."""
    call = loop.iter
    return isinstance(call, cst.Call) and sheet.name_of(call.func) in _TRACED


class Carried:
    """Writes such loops."""

    def __init__(self, sheet: Sheet, indices: Indices) -> None:
        self.sheet = sheet
        self.indices = indices

    def written(self, old: cst.For, new: cst.For) -> cst.FlattenSentinel[cst.BaseStatement]:
        """Return the loop, preceded by copies of the loop-carried numbers, which its body
        restores.
        """
        names = self._names(old)
        if not names or not isinstance(new.body, cst.IndentedBlock):
            return cst.FlattenSentinel([new])
        self.sheet.done[CARRIED] += len(names)
        copies = {name: self.sheet.fresh(f"{name}_before") for name in names}
        first, *lines = [_line(copy, name) for name, copy in copies.items()]
        before = [first.with_changes(leading_lines=new.leading_lines), *lines]
        back = [_line(name, copy) for name, copy in copies.items()]
        body = new.body.with_changes(body=[*back, *new.body.body])
        return cst.FlattenSentinel([*before, new.with_changes(body=body, leading_lines=())])

    def _names(self, loop: cst.For) -> list[str]:
        """Return the loop-carried numbers."""
        nodes = [*walk(loop.body)]
        names = dict.fromkeys(n for node in nodes if isinstance(node, _SETS) for n in set_by(node))
        uses = ((name, self._read_first(name, nodes)) for name in names)
        return [name for name, use in uses if use and self._is_number(use, frozenset())]

    def _read_first(self, name: str, nodes: Sequence[cst.CSTNode]) -> cst.Name | None:
        """Return a place in a loop's body that may read the name before the body sets it."""
        setters = [node for node in nodes if name in set_by(node)]
        uses = (node for node in nodes if isinstance(node, cst.Name) and node.value == name)
        reads = filter(self._is_read, uses)
        is_after = self.indices.flow.dominates
        return next((use for use in reads if not any(is_after(s, use) for s in setters)), None)

    def _is_read(self, use: cst.Name) -> bool:
        around = next(self.sheet.parents(use))
        is_word = isinstance(around, cst.Arg) and around.keyword is use
        is_field = isinstance(around, cst.Attribute) and around.attr is use
        return not isinstance(around, cst.AssignTarget) and not is_word and not is_field

    def _is_number(self, node: cst.BaseExpression, seen: frozenset[str]) -> bool:
        """Whether the value is a Python number; a tile keeps the value of the previous
        iteration.
        """
        if isinstance(node, cst.Name):
            return node.value in seen or self._is_set_to_numbers(node, seen | {node.value})
        if isinstance(node, cst.Attribute):
            return node.attr.value in _SIZES
        if isinstance(node, cst.Subscript):
            return isinstance(node.value, cst.Attribute) and self._is_number(node.value, seen)
        if isinstance(node, cst.Call):
            plain = any(self.sheet.is_builtin(node.func, name) for name in _PURE)
            return plain and all(self._is_number(arg.value, seen) for arg in node.args)
        inside = [child for child in children(node) if isinstance(child, cst.BaseExpression)]
        return isinstance(node, _PLAIN) and all(self._is_number(value, seen) for value in inside)

    def _is_set_to_numbers(self, name: cst.Name, seen: frozenset[str]) -> bool:
        """Whether every value assigned to the name in its function is a number; a loop's counter
        is.
        """
        scope = scope_of(self.sheet, name)
        setters = [node for node in walk(scope or self.sheet.tree) if name.value in set_by(node)]
        values = [value for _, value in self.indices.definitions(name)]
        values += [setter.value for setter in setters if isinstance(setter, cst.AugAssign)]
        counted = any(isinstance(setter, cst.For) for setter in setters)
        return (counted or bool(values)) and all(self._is_number(value, seen) for value in values)


_SETS = cst.Assign | cst.AugAssign
_PLAIN = cst.Integer | cst.Float | cst.BinaryOperation | cst.UnaryOperation | cst.IfExp
_PURE = ("min", "max", "len", "int", "float", "abs", "round")
_SIZES = ("shape", "itemsize", "size", "ndim")


def _line(target: str, value: str) -> cst.SimpleStatementLine:
    part = cst.Assign([cst.AssignTarget(cst.Name(target))], cst.Name(value))
    return cst.SimpleStatementLine([part])
