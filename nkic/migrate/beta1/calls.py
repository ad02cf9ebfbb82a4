"""Calls in another form: methods, numbers, masks without effect, and updates of tensors in HBM."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import libcst as cst

from nkic.language import versions as versions
from nkic.language.beta1.indices import Index
from nkic.language.versions import AS_CHOICE, AS_PATTERN, BY_CONDITION, BY_INDEX, BY_SHAPE
from nkic.machine.dtypes import BOOL, FLOAT32
from nkic.machine.operands import Row
from nkic.machine.targets import Buffer
from nkic.migrate.beta1.blocks import BLOCKS, MAKERS, Blocks
from nkic.migrate.beta1.indices import Indices, code, moving
from nkic.migrate.beta1.results import TARGET, Result
from nkic.migrate.beta1.slices import PARTS, NotSlices, sizes
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
from nkic.migrate.sheet import Sheet, names_in, only_target
from nkic.program.program import Instruction, View

FOLDS, MASKS = "a sum over the iterations of a loop", "a mask"
COPIES = "a copy at a place that is known at run time"
METHODS, NUMBERS = "a method of tiles", "a number of an element type"
ZEROS, PREDICATE = "nki.language.zeros", "predicate"


def is_nki(sheet: Sheet, call: cst.Call) -> bool:
    return sheet.name_of(call.func).startswith("nki.")


def method(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call:
    """Rewrite `t.broadcast_to(shape)` to `nl.broadcast_to(t, shape)`."""
    match (old.func, new.func):
        case (cst.Attribute(attr=cst.Name(name)), cst.Attribute(tile)) if (
            name in versions.FUNCTIONS and not sheet.name_of(old.func)
        ):
            sheet.done[METHODS] += 1
            first = cst.Arg(tile.with_changes(lpar=(), rpar=()), comma=COMMA)
            return new.with_changes(func=sheet.nl(name), args=[first, *new.args])
    return new


def instruction(sheet: Sheet, call: cst.Call) -> Row | None:
    """Return the instruction that the call corresponds to today."""
    module, _, name = sheet.name_of(call.func).rpartition(".")
    return row_of(f"{module}.{versions.DYNAMIC.get(name, name)}")


def copied(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call:
    """Rewrite `nisa.tensor_copy_dynamic_src(…)` to `nisa.tensor_copy(…)`."""
    module, _, name = sheet.name_of(old.func).rpartition(".")
    if module != "nki.isa" or name not in versions.DYNAMIC:
        return new
    sheet.done[COPIES] += 1
    return new.with_changes(func=sheet.of_module(module, versions.DYNAMIC[name]))


def scalar(sheet: Sheet, old: cst.Call) -> cst.BaseExpression | None:
    """Rewrite `np.dtype(np.float32).type(2.0)` to `2.0` as an argument of an NKI function.

    Such functions choose the types of numbers themselves.
    """
    match old:
        case cst.Call(cst.Attribute(cst.Call(function), cst.Name("type")), (number,)):
            around = sheet.around(old, cst.Call)
            taken = around is not None and is_nki(sheet, around)
            if taken and sheet.name_of(function) == "numpy.dtype":
                sheet.done[NUMBERS] += 1
                return number.value
    return None


def unmasked(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call:
    argument = keyword(new, "mask")
    if argument is None or mask_argument(old) is not None or not is_nki(sheet, old):
        return new
    sheet.done[MASKS] += 1
    return without(new, argument)


def unfilled(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call:
    """Rewrite `nl.zeros` in PSUM to `nl.ndarray` if products were the first to write all of it."""
    if sheet.name_of(old.func) != ZEROS:
        return new
    at = sheet.spot(old)
    every = sheet.facts.of_all_shapes
    tensors = [tensor for facts in every for tensor in facts.tensors.get(at, ())]
    if not tensors or any(tensor.buffer is not Buffer.PSUM for tensor in tensors):
        return new
    args = [arg for arg in new.args if keyword_of(arg) != "lazy_initialization"]
    new = with_args(new, args)
    # The fill is recorded where the tile is first used, unless products overwrite it.
    is_filled = any(id(tensor) in facts.filled for facts in every for tensor in tensors)
    return new if is_filled else new.with_changes(func=sheet.nl("ndarray"))


def combined(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call:
    """Rewrite `nl.atomic_rmw(t, value=v, op=np.add)` to `nisa.dma_compute(t, [v, t], …)`."""
    called, names, today = versions.COMBINED
    if sheet.function(old) != called:
        return new
    dst, value = (find(new, names, name) for name in names[:2])
    op = find(old, names, names[2])
    operator = sheet.name_of(op.value).rpartition(".")[2] if op is not None else ""
    if dst is None or value is None or not operator or len(new.args) != len(names):
        return new
    sheet.done[FOLDS] += 1
    by = sheet.nl(versions.OPERATORS.get(operator, operator))
    template = f"nisa.{today}({{0}}, [{{1}}, {{0}}], reduce_op={{2}})"
    call: cst.Call = sheet.parsed(template, code(dst.value), code(value.value), by)
    return call


def as_bits(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call:
    """View a bool predicate as uint8, the type that instructions now take."""
    instructions = sheet.instructions(old)
    views = [i.operand(PREDICATE) for i in instructions if PREDICATE in i.row.operand_index]
    are_bool = all(isinstance(view, View) and view.tensor.dtype is BOOL for view in views)
    argument = keyword(new, PREDICATE)
    if argument is None or not views or not are_bool:
        return new
    return with_value(new, argument, sheet.parsed("{}.view(nl.uint8)", code(argument.value)))


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
    maker = sheet.around(value, cst.Call)
    dtypes = {tensor.dtype for tensor in sheet.tensors(maker)} if maker else set()
    limits = {{"min": d.lowest, "max": d.highest}.get(old.attr.value) for d in dtypes}
    if len(limits) != 1 or None in limits:
        return None
    sheet.done[NUMBERS] += 1
    return cst.parse_expression(repr(limits.pop()))


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
    is_written = len(buffers) == 1 and buffers <= row.operands[row.operand_index["dst"]].buffers
    read = (node for a in call.args if keyword_of(a) != "dtype" for node in names_in(a.value))
    if not is_typed or not is_written or any(node.value == name.value for node in read):
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
    around = sheet.around(function, cst.FunctionDef)
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
    values = (keyword_value(call, "dtype") for call in calls)
    return {code(value) for value in values if value is not None}


# ---- Instructions that the evaluation did not reach, whose results resemble an operand ----------
# `t[:, part] = nisa.activation(nl.exp, x)` makes a tile with the shape of `t[:, part]` and the
# type of x, and then assigns it. None of that needs an evaluation.


def unreached_result(
    blocks: Blocks, call: cst.Call, new: cst.Call, row: Row
) -> tuple[Result, str] | None:
    """Return the result of such a call, whose new form is `new`, and the expression that makes its
    tile.

    Returns None if that is not certain.
    """
    sheet, statement = blocks.sheet, next(blocks.sheet.parents(call))
    like = versions.MADE_LIKE.get(row.name)
    read = find(call, row.parameters[1:], like) if like is not None else None
    if read is None or not isinstance(statement, cst.Assign):
        return None
    base = read.value.value if isinstance(read.value, cst.Subscript) else read.value
    name = base.value if isinstance(base, cst.Name) and blocks.is_tensor(base) else ""
    dtype = keyword_value(new, "dtype")
    is_known = bool(name) if dtype is None else row.name not in versions.SIZES  # two steps
    shape = _shape(blocks.indices, only_target(statement), row, read.value, name)
    if sheet.spot(call) in sheet.facts.instructions or not is_known or not shape:
        return None
    kind = f"{name}.dtype" if dtype is None else code(dtype)
    maker = sheet.text(f"nl.ndarray({{}}, dtype={{}}, buffer=nl.{Buffer.SBUF.value})", shape, kind)
    return Result(row, (), (), is_new=True), maker


def _shape(
    indices: Indices,
    target: cst.BaseExpression | None,
    row: Row,
    read: cst.BaseExpression,
    name: str,
) -> str:
    """Return the target's shape if it has two dimensions or more, else that of the operand read."""
    if isinstance(target, cst.Subscript):
        dims = [element for element in target.slice if _is_dimension(indices, element.slice)]
        return f"{TARGET}.shape" if len(dims) > 1 else ""
    is_whole = bool(name) and isinstance(read, cst.Name)
    if row.name not in versions.SIZES:
        return f"{name}.shape" if is_whole else ""
    texts = [f"{name}.shape[{n}]" for n in range(2)] if is_whole else sizes(indices, read, name)
    places = [versions.SIZES[row.name][dim][1] for dim in sorted(versions.SIZES[row.name])]
    return f"({', '.join(texts[n] for n in places)})" if len(texts) == len(places) else ""


def _is_dimension(indices: Indices, part: cst.BaseSlice) -> bool:
    """Whether the part of an index keeps its dimension, because it is not a number."""
    if not isinstance(part, cst.Index) or indices.has_index(part.value):
        return True
    values = [part.value]
    if isinstance(part.value, cst.Name):
        values = [expression for _, expression in indices.definitions(part.value)]
    calls = [value for value in values if isinstance(value, cst.Call)]  # of `nl.ds(start, size)`
    return 0 < len(values) == sum(indices.sheet.name_of(call.func) in PARTS for call in calls)


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
    shape, value, dtype = (find(new, names, name) for name in names)
    remaining = [
        arg.with_changes(keyword=cst.Name("value")) if arg is value and arg.keyword else arg
        for arg in new.args
        if arg is not shape and arg is not dtype
    ]
    return with_args(new, remaining)


def _iota(indices: Indices, old: cst.Call, new: cst.Call, names: Names) -> cst.Call:
    argument = find(old, names, names[0])
    assert argument is not None
    index = indices.of(argument.value)
    if index is None or not moving(index):
        raise NotSlices(f"`{code(argument.value)}` is not a sum of numbers and axes")
    return new.with_changes(args=_separated(_pattern(index, ["1"] * index.ndim)))


def _pattern(index: Index, counts: Sequence[str]) -> list[cst.Arg]:
    """Return an index as arguments: pattern, offset, and step over partitions.

    `counts` are the sizes of the tile's dimensions, where the index does not tell them.
    """
    steps, sizes = [0] * len(counts), [*counts]
    for place, (size, step, _) in enumerate(index.dims):
        if place < len(counts) and size != 1:
            steps[place], sizes[place] = step, str(size)
        elif step:
            raise NotSlices("the tile has other dimensions than the index expression")
    pairs = [f"[{step}, {size}]" for step, size in zip(steps[1:], sizes[1:], strict=True)]
    values = (f"[{', '.join(pairs) or '[0, 1]'}]", index.start, steps[0])
    return [*map(named, AS_PATTERN, (cst.parse_expression(str(value)) for value in values))]


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
    sheet = indices.sheet
    index, compared = _difference(indices, condition.value)
    shape = _counts(was.value, instructions)
    value = tile.value
    unreached = not instructions and is_in_psum(sheet, indices, was.value)
    if unreached or _copied(instructions):
        value = sheet.parsed("nl.copy({})", value)
    values = (value, other.value, sheet.nl(compared))
    args = [*_pattern(index, shape or ["1"] * index.ndim), *map(named, AS_CHOICE, values)]
    return new.with_changes(args=_separated(args))


def _separated(args: Sequence[cst.Arg]) -> list[cst.Arg]:
    return [*(arg.with_changes(comma=COMMA) for arg in args[:-1]), args[-1]]


def _difference(indices: Indices, node: cst.BaseExpression) -> tuple[Index, str]:
    condition = indices.defined(node)
    if condition is None:
        raise NotSlices(f"`{code(node)}` is set in several places")
    match condition:
        case cst.Comparison(was, (cst.ComparisonTarget(symbol, by),)) if type(symbol) in _COMPARED:
            left, right = indices.of(was), indices.of(by)
            if left is not None and right is not None:
                return left - right, _COMPARED[type(symbol)]
    raise NotSlices(f"`{code(condition)}` is not a comparison of two index expressions")


def _counts(tile: cst.BaseExpression, instructions: Sequence[Instruction]) -> list[str]:
    """Return the sizes of the tile that is selected from, as texts."""
    chosen = (i.operand(AS_CHOICE[0]) for i in instructions if i.row.name in BY_CONDITION)
    shapes = {view.shape for view in chosen if isinstance(view, View)}
    if len(shapes) == 1:
        return [str(size) for size in shapes.pop()]
    ranks = {len(shape) for shape in shapes}
    if len(ranks) == 1 and isinstance(tile, cst.Name):
        return [f"{tile.value}.shape[{n}]" for n in range(ranks.pop())]
    return []


def _copied(instructions: Sequence[Instruction]) -> bool:
    """Whether the tile is in PSUM, which the engine cannot read, so that it is copied first."""
    copies = (i for i in instructions if i.row.name not in BY_CONDITION)
    sources = (copy.operand("src") for copy in copies if "src" in copy.row.operand_index)
    return any(isinstance(s, View) and s.tensor.buffer is Buffer.PSUM for s in sources)
