"""Calls in another form: methods, numbers, masks without effect, and updates of tensors in HBM."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import libcst as cst

from nkic.language.versions import rewritten as rewritten_module
from nkic.language.versions.rewritten import AS_CHOICE, AS_PATTERN, BY_CONDITION, BY_INDEX, BY_SHAPE
from nkic.machine.dtypes import BOOL, FLOAT32, DType
from nkic.machine.operands import Row
from nkic.machine.targets import Buffer
from nkic.migrate.beta1.blocks import BLOCKS, MAKERS, Blocks
from nkic.migrate.beta1.indices import Index, Indices, added, code, less, times
from nkic.migrate.beta1.results import Result
from nkic.migrate.beta1.slices import NotSlices
from nkic.migrate.calls import (
    COMMA,
    find,
    keyword,
    keyword_of,
    keyword_value,
    mask_argument,
    named,
    row_of,
    with_args,
    with_value,
    without,
)
from nkic.migrate.sheet import Sheet, names_in
from nkic.program.program import Instruction, View

FOLDS, MASKS = "a sum over the iterations of a loop", "a mask"
COPIES = "a copy at a place that is known at run time"
METHODS, NUMBERS = "a method of tiles", "a number of an element type"
ZEROS, PREDICATE = "nki.language.zeros", "predicate"


def is_nki(sheet: Sheet, call: cst.Call) -> bool:
    """Whether the call is of a function of NKI."""
    return sheet.name_of(call.func).startswith("nki.")


def method(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call:
    """Rewrite `t.broadcast_to(shape)` to `nl.broadcast_to(t, shape)`."""
    if not isinstance(old.func, cst.Attribute) or sheet.name_of(old.func):
        return new
    name = old.func.attr.value
    if name not in rewritten_module.FUNCTIONS or not isinstance(new.func, cst.Attribute):
        return new
    sheet.done[METHODS] += 1
    tile = new.func.value.with_changes(lpar=(), rpar=())
    first = cst.Arg(tile, comma=COMMA)
    function = sheet.nl(name)
    return new.with_changes(func=function, args=[first, *new.args])


def instruction(sheet: Sheet, call: cst.Call) -> Row | None:
    """Return the instruction that the call corresponds to today."""
    module, _, name = sheet.name_of(call.func).rpartition(".")
    return row_of(f"{module}.{rewritten_module.DYNAMIC.get(name, name)}")


def copied(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call:
    """Rewrite `nisa.tensor_copy_dynamic_src(…)` to `nisa.tensor_copy(…)`; the tile's index carries
    the rest.
    """
    module, _, name = sheet.name_of(old.func).rpartition(".")
    if module != "nki.isa" or name not in rewritten_module.DYNAMIC:
        return new
    sheet.done[COPIES] += 1
    return new.with_changes(func=sheet.of_module(module, rewritten_module.DYNAMIC[name]))


def scalar(sheet: Sheet, old: cst.Call) -> cst.BaseExpression | None:
    """Rewrite `np.dtype(np.float32).type(2.0)` to `2.0` as an argument of an NKI function.

    Such functions choose the types of numbers themselves.
    """
    function = old.func
    dtype_call = function.value if isinstance(function, cst.Attribute) else None
    if not isinstance(dtype_call, cst.Call) or code(function).rpartition(".")[2] != "type":
        return None
    around = next((p for p in sheet.parents(old) if isinstance(p, cst.Call)), None)
    taken = around is not None and is_nki(sheet, around)
    if sheet.name_of(dtype_call.func) != "numpy.dtype" or not taken or len(old.args) != 1:
        return None
    sheet.done[NUMBERS] += 1
    return old.args[0].value


def unmasked(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call:
    """Remove `mask=None`."""
    argument = keyword(new, "mask")
    if argument is None or mask_argument(old) is not None or not is_nki(sheet, old):
        return new
    sheet.done[MASKS] += 1
    return without(new, argument)


def unfilled(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call:
    """Rewrite `nl.zeros` in PSUM to `nl.ndarray` if a product is the first to write it."""
    at = sheet.spot(old)
    tensors = sheet.facts.tensors.get(at, ())
    if sheet.name_of(old.func) != ZEROS or at in sheet.facts.instructions:
        return new
    if not tensors or any(tensor.buffer is not Buffer.PSUM for tensor in tensors):
        return new
    args = [arg for arg in new.args if keyword_of(arg) != "lazy_initialization"]
    return with_args(new, args).with_changes(func=sheet.nl("ndarray"))


def combined(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call:
    """Rewrite `nl.atomic_rmw(t, value=v, op=np.add)` to `nisa.dma_compute(t, [v, t],
    reduce_op=…)`.
    """
    called, names, today = rewritten_module.COMBINED
    if sheet.function(old) != called:
        return new
    dst, value = (find(new, names, name) for name in names[:2])
    op = find(old, names, names[2])
    operator = sheet.name_of(op.value).rpartition(".")[2] if op is not None else ""
    if dst is None or value is None or not operator or len(new.args) != len(names):
        return new
    sheet.done[FOLDS] += 1
    operator = rewritten_module.OPERATORS.get(operator, operator)
    by = code(sheet.nl(operator))
    function = code(sheet.nisa(today))
    target = code(dst.value)
    text = f"{function}({target}, [{code(value.value)}, {target}], reduce_op={by})"
    rewritten_call = cst.parse_expression(text)
    assert isinstance(rewritten_call, cst.Call)
    return rewritten_call


def as_bits(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call:
    """View a bool predicate as uint8, the type that instructions now take."""
    instructions = sheet.instructions(old)
    views = [
        instruction.operand(PREDICATE)
        for instruction in instructions
        if PREDICATE in instruction.row.operand_index
    ]
    are_bool = all(isinstance(view, View) and view.tensor.dtype is BOOL for view in views)
    argument = keyword(new, PREDICATE)
    if argument is None or not views or not are_bool:
        return new
    byte = code(sheet.nl("uint8"))
    value = cst.parse_expression(f"{code(argument.value)}.view({byte})")
    return with_value(new, argument, value)


# ------------------------------------------------------------------------------------------------
# Attributes with another form today: `nl.fp32.min`, `t.shape` of a list, `nki.tensor`.

NOTES = "a note of a tensor"


def written(blocks: Blocks, old: cst.Attribute) -> cst.BaseExpression | None:
    """Return the replacement of an attribute; None if it stays.

    `nl.fp32.min` becomes the number, `nl.finfo(dtype).min` that of the type of the tensor filled
    with it, and `t.shape` of a list of tiles the shape of its first tile, preceded by the number of
    tiles.
    """
    sheet = blocks.sheet
    name = sheet.name_of(old)
    if name == "nki.language.fp32.min":
        sheet.done[NUMBERS] += 1
        return cst.parse_expression(repr(FLOAT32.lowest))
    if isinstance(next(sheet.parents(old)), cst.Annotation) and name == "nki.tensor":
        sheet.done[NOTES] += 1
        return sheet.nl("NkiTensor")
    if text := blocks.attribute(old):
        sheet.done[BLOCKS] += 1
        return cst.parse_expression(text)
    return _filling(blocks, old)


def _filling(blocks: Blocks, old: cst.Attribute) -> cst.BaseExpression | None:
    """Rewrite `nl.finfo(dtype).min` in a call that makes tensors of a single type."""
    sheet, value = blocks.sheet, old.value
    if not isinstance(value, cst.Call) or sheet.name_of(value.func) != "nki.language.finfo":
        return None
    maker = next((p for p in sheet.parents(value) if isinstance(p, cst.Call)), None)
    tensors = sheet.tensors(maker) if maker else ()
    limits = {_limit(tensor.dtype, old.attr.value) for tensor in tensors}
    if len(limits) != 1 or None in limits:
        return None
    sheet.done[NUMBERS] += 1
    return cst.parse_expression(repr(limits.pop()))


def _limit(dtype: DType, name: str) -> float | None:
    return {"min": dtype.lowest, "max": dtype.highest}.get(name)


# ---- Statements that the evaluation did not reach, but that declarations determine --------------
# In `t[...] = nisa.affine_select(…, dtype=kind)` with `t = nl.ndarray(…, dtype=kind)`, the result
# has the type of `t`, whatever that is: the instruction writes `t[...]` directly.


def declared_result(sheet: Sheet, indices: Indices, call: cst.Call, row: Row) -> Result | None:
    """Return the result of a call that was not evaluated: the part of a tile that it is assigned
    to.

    Returns None if the types may differ, or if the call reads that tile.
    """
    statement = next(sheet.parents(call))
    if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0].target
    name = target.value if isinstance(target, cst.Subscript) else None
    if not isinstance(name, cst.Name) or sheet.spot(call) in sheet.facts.instructions:
        return None
    makers = _makers(sheet, indices, name)
    requested, declared = _dtypes([call]), _dtypes(makers)
    is_typed = len(requested) == 1 and (
        requested == {f"{name.value}.dtype"} or requested == declared
    )
    buffers = {tensor.buffer for maker in makers for tensor in sheet.tensors(maker)}
    dst = row.operands[row.operand_index["dst"]]
    is_written = len(buffers) == 1 and buffers <= dst.buffers
    if not is_typed or not is_written or _reads(call, name.value):
        return None
    return Result(row, (), (), is_new=False)


def is_in_psum(sheet: Sheet, indices: Indices, tile: cst.BaseExpression) -> bool:
    """Whether the tile, or the tile of which this is a part, was made in PSUM."""
    name = tile.value if isinstance(tile, cst.Subscript) else tile
    if not isinstance(name, cst.Name):
        return False
    makers = _makers(sheet, indices, name)
    return {t.buffer for maker in makers for t in sheet.tensors(maker)} == {Buffer.PSUM}


def is_never_called(sheet: Sheet, function: cst.FunctionDef) -> bool:
    """Whether nothing in the enclosing function refers to this function."""
    around = next((p for p in sheet.parents(function) if isinstance(p, cst.FunctionDef)), None)
    if around is None:
        return False
    name = function.name
    return all(node is name or node.value != name.value for node in names_in(around))


def _makers(sheet: Sheet, indices: Indices, name: cst.Name) -> list[cst.Call]:
    """Return the calls that make the tile of a name; none if something else assigns it."""
    values = [value for _, value in indices.definitions(name)]
    calls = [expression for expression in values if isinstance(expression, cst.Call)]
    makers = [call for call in calls if sheet.name_of(call.func) in MAKERS]
    return makers if len(makers) == len(values) else []


def _dtypes(calls: Iterable[cst.Call]) -> set[str]:
    """Return the element types that the calls state."""
    values = (keyword_value(call, "dtype") for call in calls)
    return {code(value) for value in values if value is not None}


def _reads(call: cst.Call, name: str) -> bool:
    """Whether the call refers to the tile other than for its type."""
    values = [arg.value for arg in call.args if keyword_of(arg) != "dtype"]
    return any(node.value == name for value in values for node in names_in(value))


# ------------------------------------------------------------------------------------------------
# Instructions that took index expressions or shapes, and now take patterns and a dst.
# `nisa.iota(expr, dtype)`, `nisa.affine_select(pred=…)`, `nisa.memset(shape, …)`. Source:
# migration guide, 0.1.0 to 0.2.0; the pages of the three instructions.

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
