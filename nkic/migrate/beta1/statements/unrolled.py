"""Statements on more axes than an instruction's tile has: loops over the first of them.

Beta 1 splits such a statement; later versions leave that to the kernel. Only element-wise
computations of tiles that the statement does not write may be split here.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from nkic.ir.program import Instruction
from nkic.ir.tensors import Tensor, View
from nkic.migrate.beta1.indices import Indices
from nkic.migrate.beta1.slices import NotSlices, is_indexed, sums
from nkic.migrate.facts import dst_of
from nkic.migrate.sheet import Sheet
from nkic.migrate.tree import walk

UNROLLED = "axes of a statement as loops"
Loops = dict[int, tuple[str, str]]
"""The loop's variable and trip count, by the place of the axis."""


def loops_of(sheet: Sheet, indices: Indices, line: cst.SimpleStatementLine) -> Loops:
    """Return the loops that a statement needs, from the outermost; none if it cannot be split."""
    part = line.body[0]
    if not isinstance(part, cst.Assign) or len(part.targets) != 1 or len(line.body) != 1:
        return {}
    target = part.targets[0].target
    if not isinstance(target, cst.Subscript) or not is_indexed(indices, target):
        return {}
    instructions = [*_inside(sheet, part)]
    min_rank = min((len(view.shape) for view in _written(instructions)), default=0)
    try:
        axes = [*_axes(indices, [target, *_indexed(indices, part.value)])]
    except NotSlices:
        return {}
    ranks = {rank for rank, _, _ in axes}
    if len(ranks) != 1 or not 1 < min_rank < max(ranks):
        return {}
    if not _is_apart(sheet, target, instructions) or not _is_plain(indices, part.value):
        return {}
    return _loops_over(sheet, axes, max(ranks) - min_rank)


def _loops_over(sheet: Sheet, axes: list[tuple[int, int, str]], last: int) -> Loops:
    """Return loops over the axes 1 to `last`; none if the trip counts of one axis differ."""
    loops: Loops = {}
    for place in range(1, last + 1):
        counts = {count for _, axis, count in axes if axis == place}
        if len(counts) != 1:
            return {}
        loops[place] = (sheet.fresh("ijklmn"[(place - 1) % 6]), counts.pop())
    return loops


def _axes(indices: Indices, subscripts: list[cst.Subscript]) -> Iterator[tuple[int, int, str]]:
    """Yield the rank, place and count of each axis of the subscripts. Raises `NotSlices`."""
    for subscript in subscripts:
        for index in sums(indices, subscript):
            for _, axis in index.parts:
                yield axis.rank, axis.place, axis.count


def _inside(sheet: Sheet, part: cst.Assign) -> Iterator[Instruction]:
    """Yield the instructions recorded in a statement."""
    for node in (part.targets[0].target, *walk(part.value)):
        if isinstance(node, cst.BaseExpression):
            yield from sheet.instructions(node)


def _written(instructions: list[Instruction]) -> Iterator[View]:
    return (dst for instruction in instructions if (dst := dst_of(instruction)) is not None)


def _is_apart(sheet: Sheet, target: cst.Subscript, instructions: list[Instruction]) -> bool:
    """Whether the statement does not read the tensor that it sets."""
    written = set(map(id, _tensors(sheet.instructions(target), True)))
    return bool(written) and written.isdisjoint(map(id, _tensors(instructions, False)))


def _tensors(
    instructions: tuple[Instruction, ...] | list[Instruction], written: bool
) -> Iterator[Tensor]:
    for instruction in instructions:
        for operand, view in zip(instruction.row.operands, instruction.operands, strict=True):
            if isinstance(view, View) and (operand.name == "dst") == written:
                yield view.tensor


def _indexed(indices: Indices, value: cst.BaseExpression) -> Iterator[cst.Subscript]:
    for node in walk(value):
        if isinstance(node, cst.Subscript) and is_indexed(indices, node):
            yield node


def _is_plain(indices: Indices, value: cst.CSTNode) -> bool:
    """Whether the value consists of element-wise operations on numbers and parts of tensors."""
    if isinstance(value, cst.Subscript):
        return is_indexed(indices, value)
    if isinstance(value, cst.BinaryOperation):
        return _is_plain(indices, value.left) and _is_plain(indices, value.right)
    if isinstance(value, cst.UnaryOperation):
        return _is_plain(indices, value.expression)
    if isinstance(value, cst.Name):
        return not indices.is_tile(value) and not indices.has_index(value)
    return isinstance(value, cst.Integer | cst.Float)


def under(sheet: Sheet, loops: Loops, line: cst.SimpleStatementLine) -> cst.BaseStatement:
    """Return the line inside its loops."""
    sheet.done[UNROLLED] += 1
    statement: cst.BaseStatement = line.with_changes(leading_lines=())
    for name, count in reversed(loops.values()):
        around = cst.parse_expression(f"range({count})")
        statement = cst.For(cst.Name(name), around, cst.IndentedBlock([statement]))
    return statement.with_changes(leading_lines=line.leading_lines)
