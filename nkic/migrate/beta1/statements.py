"""Kernels that return tiles on chip: `return tile` stores it in HBM first.

Beta 1's simulator gives such tiles to the caller; later versions return only tensors in shared HBM.
The evaluation determines which results these are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

import libcst as cst

from nkic.language.versions.rewritten import BY_DMA, PRODUCTS, Product
from nkic.machine.dtypes import FLOAT32, DType
from nkic.machine.targets import Buffer
from nkic.migrate.beta1.indices import Indices, added
from nkic.migrate.beta1.indices import code as indices_code
from nkic.migrate.beta1.masks import BINARY
from nkic.migrate.beta1.results import Hoisting, NoResult, Pending, PendingCalls, result_of
from nkic.migrate.beta1.slices import NotSlices, is_indexed, sums
from nkic.migrate.calls import keyword, keyword_of, keyword_value, named, with_args
from nkic.migrate.facts import dst_of
from nkic.migrate.sheet import Sheet, code, scope_of, walk
from nkic.program.program import Instruction, Tensor, View

# ---- Sums of products in PSUM, `t += nl.matmul(x, y)`, as instructions that add to t ------------

_POSITIONAL = cst.MaybeSentinel.DEFAULT


def added_product(
    sheet: Sheet, pending: PendingCalls, old: cst.Call, new: cst.Call
) -> cst.Call | cst.Name:
    """Rewrite `t += nl.matmul(x, y, transpose_x=True)` in PSUM to an instruction that adds to t.

    Without the flag, x is transposed and copied first. Returns `new` for other calls.
    """
    product = PRODUCTS.get(sheet.function(old))
    if product is None:
        return new
    value = keyword_value(old, product.flag)
    flag = code(value) if value is not None else "False"
    factors = [arg for arg in new.args if keyword_of(arg) != product.flag]
    if not _is_single_product(sheet, old, product, flag) or len(factors) != len(product.names):
        return new
    args = [arg.with_changes(keyword=None, equal=_POSITIONAL) for arg in factors]
    args[-1] = args[-1].with_changes(comma=_POSITIONAL)
    if flag == "False":
        args[0] = args[0].with_changes(value=_transposed(sheet, args[0].value))
    func = sheet.nisa(product.by)
    try:
        result = result_of(sheet, old, None, only=product.by)
    except NoResult:
        return new
    if result.is_new:
        return new
    return pending.add(Pending(old, new.with_changes(func=func, args=args), result, ""))


def _is_single_product(sheet: Sheet, old: cst.Call, product: Product, flag: str) -> bool:
    """Whether every evaluation was one product, with what transposes its first factor."""
    rows = Counter(instruction.row.name for instruction in sheet.instructions(old))
    before = {"True": (), "False": product.turn}.get(flag)
    count = rows[product.by]
    if before is None or not count:
        return False
    return rows == dict.fromkeys((*before, product.by), count)


def _transposed(sheet: Sheet, factor: cst.BaseExpression) -> cst.Call:
    """Return `nl.copy(nl.transpose(x))`."""
    turn, copy = (sheet.nl(name) for name in ("transpose", "copy"))
    return cst.Call(copy, [cst.Arg(cst.Call(turn, [cst.Arg(factor)]))])


# --------------------------------------------------------------------------------------------------

STORED = "a tile that is returned"


def stored(
    sheet: Sheet, pending: PendingCalls, old: cst.CSTNode, line: cst.SimpleStatementLine
) -> cst.FlattenSentinel[cst.BaseStatement] | None:
    """Return the lines that replace a `return`; None if it returns no such tile."""
    now = line.body[0]
    if not isinstance(now, cst.Return) or now.value is None:
        return None
    scope = scope_of(sheet, old)
    name = scope.name.value if scope is not None else ""
    places = sorted(place for kernel, place in sheet.facts.kept if kernel == name)
    if not places or _is_called_by_kernels(sheet, name):
        return None
    values = _values(now.value)
    if max(places) >= len(values) or any(
        isinstance(element, cst.StarredElement) for element in values
    ):
        text = "this returns tiles on the chip, and does not name them one by one"
        sheet.leave(old, text, "store them in tensors of nl.shared_hbm, and return those")
        return None
    stores = {place: _stored(sheet, pending, values[place].value) for place in places}
    sheet.done[STORED] += len(places)
    lines = [store_line for store_lines, _ in stores.values() for store_line in store_lines]
    outputs = {place: output for place, (_, output) in stores.items()}
    lines.append(line.with_changes(body=[_returning(now, outputs)], leading_lines=()))
    lines[0] = lines[0].with_changes(leading_lines=line.leading_lines)
    return cst.FlattenSentinel(_hoisted(sheet, pending, lines))


def _is_called_by_kernels(sheet: Sheet, name: str) -> bool:
    """Whether evaluated functions call this one and use its tile."""
    calls = (node for node in walk(sheet.tree) if isinstance(node, cst.Call))
    around = [scope_of(sheet, call) for call in calls if indices_code(call.func) == name]
    lines = {at[0] for at in sheet.facts.instructions}
    spans = [sheet.span(scope) for scope in around if scope is not None]
    return any(span.line <= line <= span.end_line for span in spans for line in lines)


def _hoisted(
    sheet: Sheet, pending: PendingCalls, lines: Sequence[cst.SimpleStatementLine]
) -> Iterator[cst.BaseStatement]:
    """Yield the lines, each preceded by the instructions inside it."""
    for line in lines:
        lines_of = Hoisting(sheet, pending).hoisted(line)
        yield from lines_of if isinstance(lines_of, cst.FlattenSentinel) else [lines_of]


def _values(value: cst.BaseExpression) -> Sequence[cst.BaseElement]:
    """Return the values of a `return`, one by one."""
    if isinstance(value, cst.Tuple | cst.List):
        return value.elements
    return [cst.Element(value)]


def _stored(
    sheet: Sheet, pending: PendingCalls, tile: cst.BaseExpression
) -> tuple[list[cst.SimpleStatementLine], cst.Name]:
    """Return the lines that store a tile, and the tensor in which it is stored."""
    lines = []
    if not isinstance(tile, cst.Name) or pending.get(tile) is not None:
        name = sheet.fresh("result")
        target = [cst.AssignTarget(cst.Name(name))]
        lines.append(cst.SimpleStatementLine([cst.Assign(target, tile)]))
    else:
        name = tile.value
    output = sheet.fresh(f"{name}_hbm")
    make, store, shared = (indices_code(sheet.nl(n)) for n in ("ndarray", "store", "shared_hbm"))
    allocation = f"{output} = {make}({name}.shape, dtype={name}.dtype, buffer={shared})"
    return [*lines, _line(allocation), _line(f"{store}({output}, {name})")], cst.Name(output)


def _line(text: str) -> cst.SimpleStatementLine:
    line = cst.parse_statement(text)
    assert isinstance(line, cst.SimpleStatementLine)
    return line


def _returning(now: cst.Return, new: Mapping[int, cst.BaseExpression]) -> cst.Return:
    """Return the `return` with other values at some places."""
    if not isinstance(now.value, cst.Tuple | cst.List):
        return now.with_changes(value=new[0])
    elements = [
        element.with_changes(value=new[place]) if place in new else element
        for place, element in enumerate(now.value.elements)
    ]
    return now.with_changes(value=now.value.with_changes(elements=elements))


# ---- Assignments at a partition where no engine can start: `t[5, 0:8] = 0.0` --------------------
# Beta 1 moves the value by DMA. Later versions treat the assignment as an engine's instruction,
# which is rejected there.

MOVED = "an assignment by DMA"


def moved(
    sheet: Sheet, old: cst.CSTNode, line: cst.SimpleStatementLine
) -> cst.SimpleStatementLine | None:
    """Rewrite an assignment to `nisa.dma_copy(t[5:6, 0:8], value)`; None if an engine wrote it."""
    now = line.body[0]
    if not isinstance(old, cst.Assign) or not isinstance(now, cst.Assign) or len(old.targets) > 1:
        return None
    was, target = old.targets[0].target, now.targets[0].target
    if not isinstance(was, cst.Subscript) or not isinstance(target, cst.Subscript):
        return None
    if not any(map(_is_transfer, sheet.instructions(was))) or not isinstance(was.value, cst.Name):
        return None
    if len(was.slice) == 1 and indices_code(was.slice[0].slice) == "...":
        return None  # the whole tile: boxes of a mask were moved
    dst = _as_slices(was, target)
    value = indices_code(now.value)
    if sheet.tensors(was):  # a tile was made for the value, a number
        shape = f"({'1, ' * (len(was.slice) - 1)}1)" if _is_element(was) else f"{dst}.shape"
        full = indices_code(sheet.nl("full"))
        value = f"{full}({shape}, {value}, dtype={was.value.value}.dtype)"
    sheet.done[MOVED] += 1
    function = indices_code(sheet.nisa(BY_DMA))
    call = cst.parse_expression(f"{function}({dst}, {value})")
    return line.with_changes(body=[cst.Expr(call)])


def _is_transfer(instruction: Instruction) -> bool:
    """Whether it is a copy by DMA from one tile on chip to another."""
    if instruction.row.name != BY_DMA:
        return False
    views = [instruction.operand(name) for name in ("dst", "src")]
    return all(isinstance(view, View) and view.tensor.on_chip for view in views)


def _is_element(target: cst.Subscript) -> bool:
    return not any(isinstance(element.slice, cst.Slice) for element in target.slice)


def _as_slices(was: cst.Subscript, target: cst.Subscript) -> str:
    """Return the target with one-element slices for numbers."""
    if len(was.slice) != len(target.slice):
        return indices_code(target)
    texts = [indices_code(element.slice) for element in target.slice]
    for place, element in enumerate(target.slice):
        value = element.slice.value if isinstance(element.slice, cst.Index) else None
        if value is not None and not isinstance(value, cst.Ellipsis | cst.Call):
            texts[place] = f"{texts[place]}:{added(texts[place], '1')}"
    return f"{indices_code(target.value)}[{', '.join(texts)}]"


# ------------------------------------------------------------------------------------------------
# Statements on more axes than an instruction's tile has: loops over the first of them.
# Beta 1 splits such a statement; later versions leave that to the kernel. Only element-wise
# computations of tiles that the statement does not write may be split here.

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


# ---- Results that Beta 1 rounded once -----------------------------------------------------------
# `t[...] = nl.divide(x, y)` was one instruction that wrote `t` in the type of `t`. Since then, the
# result has the type of the operands and is converted by the assignment: float8 by way of bfloat16
# is rounded twice. `dtype=` sets the type of the result. A number with a fraction made a float32
# of integers, which now stay integers.

ROUNDED = "a result that is rounded once"
_OPERATORS: dict[type[cst.BaseBinaryOp], str] = {
    cst.Add: "add",
    cst.Subtract: "subtract",
    cst.Multiply: "multiply",
    cst.Divide: "divide",
}


def typed(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call:
    """Add the `dtype` that Beta 1 wrote to a call of `nki.language`."""
    name = sheet.name_of(old.func)
    if not sheet.function(old) or keyword(old, "dtype") is not None:
        return new
    dtype = _direct(sheet, old, is_binary=name in BINARY)
    if dtype is None:
        return new
    sheet.done[ROUNDED] += 1
    return with_args(new, [*new.args, named("dtype", sheet.nl(dtype.name))])


def operator(
    sheet: Sheet, old: cst.BinaryOperation, new: cst.BinaryOperation
) -> cst.BaseExpression:
    """Rewrite `x * y` to `nl.multiply(x, y, dtype=…)` if it needs a dtype."""
    dtype = _direct(sheet, old, is_binary=True)
    if dtype is None:
        return new
    name = _OPERATORS.get(type(old.operator))
    if name is None:
        _leave(sheet, old, dtype)
        return new
    sheet.done[ROUNDED] += 1
    type_ = named("dtype", sheet.nl(dtype.name))
    function = sheet.nl(name)
    return cst.Call(function, [cst.Arg(new.left), cst.Arg(new.right), type_])


def leave_added(sheet: Sheet, old: cst.AugAssign) -> None:
    """Report a `t[...] += x` with a wider `x` as left unchanged."""
    for instruction in sheet.instructions(old):
        dst = dst_of(instruction)
        if dst is not None and _twice(_inputs([instruction], ()), dst.dtype):
            _leave(sheet, old, dst.dtype)
            return


def _leave(sheet: Sheet, node: cst.CSTNode, dtype: DType) -> None:
    text = f"this was rounded to {dtype.name} once, and would now be rounded twice"
    sheet.leave(node, text, f"write it as a function of nl with dtype=nl.{dtype.name}")


def _direct(sheet: Sheet, node: cst.CSTNode, *, is_binary: bool) -> DType | None:
    """Return the type that an expression wrote, if today's result has another one and other bits;
    else None.
    """
    own = set(map(id, sheet.tensors(node)))
    instructions = sheet.instructions(node)
    if not instructions:
        return None
    last = (dst_of(i) for i in instructions if i.row is instructions[-1].row)
    views = [dst for dst in last if dst is not None]
    inputs = _inputs(instructions, own)
    dtypes = {
        view.dtype
        for view in views
        if (_is_moved(view, own) and _twice(inputs, view.dtype))
        or (is_binary and view.dtype is FLOAT32 and _are_integers(inputs))
    }
    return dtypes.pop() if len(dtypes) == 1 else None


def _is_moved(view: View, own: set[int]) -> bool:
    """Whether a tile of another expression was written, and not a matrix product, which stays
    float32.
    """
    return id(view.tensor) not in own and view.tensor.buffer is not Buffer.PSUM


def _inputs(instructions: Sequence[Instruction], own: Collection[int]) -> set[DType]:
    """Return the types of what the instructions read, other than tiles of their own."""
    views = (
        view
        for instruction in instructions
        for operand, view in zip(instruction.row.operands, instruction.operands, strict=True)
        if operand.name != "dst" and isinstance(view, View) and id(view.tensor) not in own
    )
    return {view.dtype for view in views}


def _twice(inputs: set[DType], dtype: DType) -> bool:
    """Whether the result of operands of these types is rounded before it becomes `dtype`."""
    is_rounded = bool(inputs) and FLOAT32 not in inputs and all(i.is_float for i in inputs)
    is_other = any(i is not dtype and i.size >= dtype.size for i in inputs)
    return dtype.is_float and is_rounded and is_other


def _are_integers(inputs: set[DType]) -> bool:
    return bool(inputs) and all(dtype.is_integer for dtype in inputs)
