"""Instructions that took index expressions or shapes, and now take patterns and a dst.

`nisa.iota(expr, dtype)`, `nisa.affine_select(pred=…)`, `nisa.memset(shape, …)`. Source: migration
guide, 0.1.0 to 0.2.0; the pages of the three instructions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import libcst as cst

from nkic.ir.program import Instruction
from nkic.ir.tensors import View
from nkic.language.versions.rewritten import AS_CHOICE, AS_PATTERN, BY_CONDITION, BY_INDEX, BY_SHAPE
from nkic.machine.memory import Buffer
from nkic.machine.operands import Row
from nkic.migrate.arguments import COMMA, find, named, with_args
from nkic.migrate.beta1.declared import is_in_psum
from nkic.migrate.beta1.indices import Index, Indices, added, code, less, times
from nkic.migrate.beta1.slices import NotSlices

Names = tuple[str, ...]
_COMPARED: dict[type[Any], str] = {
    cst.GreaterThan: "greater",
    cst.GreaterThanEqual: "greater_equal",
    cst.LessThan: "less",
    cst.LessThanEqual: "less_equal",
    cst.Equal: "equal",
    cst.NotEqual: "not_equal",
}


def rewritten(
    indices: Indices, row: Row, old: cst.Call, new: cst.Call, instructions: Sequence[Instruction]
) -> cst.Call:
    """Return the call in today's form, without its dst. Raises `NotSlices`."""
    name = row.name
    if name in BY_INDEX and find(old, BY_INDEX[name], BY_INDEX[name][0]) is not None:
        return _iota(indices, old, new, BY_INDEX[name])
    if name in BY_CONDITION and find(old, BY_CONDITION[name], BY_CONDITION[name][0]) is not None:
        return _selected(indices, old, new, instructions, BY_CONDITION[name])
    if name in BY_SHAPE:
        return _filled(new, BY_SHAPE[name])
    return new


def stated_shape(row: Row, old: cst.Call) -> str:
    """Return the shape of the result that a call states; "" if it states none."""
    argument = (
        find(old, BY_SHAPE[row.name], BY_SHAPE[row.name][0]) if row.name in BY_SHAPE else None
    )
    return code(argument.value) if argument is not None else ""


def _filled(new: cst.Call, names: Names) -> cst.Call:
    """Rewrite `memset(shape, value, dtype)` to `memset(value)`."""
    args = [find(new, names, name) for name in (names[0], names[2])]
    value = find(new, names, names[1])
    remaining = [
        arg.with_changes(keyword=cst.Name("value")) if arg is value and arg.keyword else arg
        for arg in new.args
        if all(arg is not other for other in args)
    ]
    return with_args(new, remaining)


def _iota(indices: Indices, old: cst.Call, new: cst.Call, names: Names) -> cst.Call:
    argument = find(old, names, names[0])
    assert argument is not None
    index = indices.of(argument.value)
    if index is None or not index.parts:
        raise NotSlices(f"`{code(argument.value)}` is not a sum of numbers and axes")
    ones = ["1"] * index.rank
    return new.with_changes(args=_pattern(index, ones, index.rank))


def _pattern(index: Index, counts: Sequence[str], rank: int) -> list[cst.Arg]:
    """Return an index as arguments: pattern, offset, and step over partitions."""
    steps = ["0"] * rank
    sizes = [*counts]
    offset = index.base
    for place, count in index.repeated.items():
        sizes[place] = count if place < rank else sizes[place]
    for text, axis in index.parts:
        if axis.place >= rank:
            raise NotSlices("the tile has other dimensions than the index expression")
        steps[axis.place] = added(steps[axis.place], text)
        sizes[axis.place] = axis.count
        offset = added(offset, times(text, axis.start))
    pairs = [f"[{step}, {size}]" for step, size in zip(steps[1:], sizes[1:], strict=True)]
    texts = (f"[{', '.join(pairs) or '[0, 1]'}]", offset, steps[0])
    args = [
        named(name, cst.parse_expression(text))
        for name, text in zip(AS_PATTERN, texts, strict=True)
    ]
    return [*(arg.with_changes(comma=COMMA) for arg in args[:-1]), args[-1]]


def _selected(
    indices: Indices,
    old: cst.Call,
    new: cst.Call,
    instructions: Sequence[Instruction],
    names: Names,
) -> cst.Call:
    condition, was = find(old, names, names[0]), find(old, names, names[1])
    tile, other = (find(new, names, name) for name in names[1:])
    if condition is None or tile is None or other is None or was is None:
        raise NotSlices("some of its arguments are missing")
    index, compared = _difference(indices, condition.value)
    shape = _counts(was.value, instructions)
    rank = len(shape) or index.rank
    args = _pattern(index, shape or ["1"] * rank, rank)
    args[-1] = args[-1].with_changes(comma=COMMA)
    value = tile.value
    unreached = not instructions and is_in_psum(indices.sheet, indices, was.value)
    if unreached or _copied(instructions):
        copy = indices.sheet.nl("copy")
        value = cst.Call(copy, [cst.Arg(value)])
    operator = indices.sheet.nl(compared)
    *choices, last = map(named, AS_CHOICE, (value, other.value, operator))
    separated = (choice.with_changes(comma=COMMA) for choice in choices)
    return new.with_changes(args=[*args, *separated, last])


def _difference(indices: Indices, node: cst.BaseExpression) -> tuple[Index, str]:
    """Return the index that is compared with 0, and the comparison."""
    if isinstance(node, cst.Name):
        definition = indices.definition(node)
        if definition is None or definition[0] >= 0:
            raise NotSlices(f"`{node.value}` is set in several places")
        return _difference(indices, definition[1])
    if not isinstance(node, cst.Comparison) or len(node.comparisons) != 1:
        raise NotSlices(f"`{code(node)}` is not a comparison of two index expressions")
    operator = _COMPARED.get(type(node.comparisons[0].operator))
    left, right = indices.of(node.left), indices.of(node.comparisons[0].comparator)
    if operator is None or left is None or right is None:
        raise NotSlices(f"`{code(node)}` is not a comparison of two index expressions")
    negated = tuple((_negative(step), axis) for step, axis in right.parts)
    return Index(less(left.base, right.base), (*left.parts, *negated)), operator


def _negative(text: str) -> str:
    return text[1:] if text.startswith("-") and text[1:].isdecimal() else times("-1", text)


def _counts(tile: cst.BaseExpression, instructions: Sequence[Instruction]) -> list[str]:
    """Return the sizes of the tile that is selected from, as texts."""
    views = [
        instruction.operand(AS_CHOICE[0])
        for instruction in instructions
        if instruction.row.name in BY_CONDITION
    ]
    shapes = {view.shape for view in views if isinstance(view, View)}
    if len(shapes) == 1:
        return [str(size) for size in shapes.pop()]
    ranks = {len(shape) for shape in shapes}
    if len(ranks) == 1 and isinstance(tile, cst.Name):
        return [f"{tile.value}.shape[{n}]" for n in range(ranks.pop())]
    return []


def _copied(instructions: Sequence[Instruction]) -> bool:
    """Whether the tile is in PSUM, which the engine cannot read, so that it is copied first."""
    copies = (i for i in instructions if i.row.name not in BY_CONDITION)
    sources = [copy.operand("src") for copy in copies if "src" in copy.row.operand_index]
    return any(isinstance(s, View) and s.tensor.buffer is Buffer.PSUM for s in sources)
