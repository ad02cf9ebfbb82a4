"""Statements that mean something else in later versions: returns, loops that Beta 1 traced once,
assignments that it split, moved by DMA or rounded once, and those on elements that a mask skipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, cast

import libcst as cst

from nkic.language import versions
from nkic.language.versions import BY_DMA, OUTPUTS, PRODUCTS
from nkic.machine.dtypes import FLOAT32, INT32, DType
from nkic.migrate.beta1.blocks import Blocks
from nkic.migrate.beta1.indices import Indices, code, moving, number, set_by
from nkic.migrate.beta1.masks import BINARY
from nkic.migrate.beta1.results import Hoisting, NoResult, Pending, PendingCalls, result_of
from nkic.migrate.beta1.slices import NotSlices, is_indexed, sums
from nkic.migrate.calls import (
    find,
    is_plain,
    keyword,
    keyword_of,
    keyword_value,
    mask_argument,
    named,
    with_args,
)
from nkic.migrate.facts import dst_of
from nkic.migrate.sheet import Sheet, children, names_in, only_target, scope_of, walk
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
    # Every evaluation is one product, with what transposes its first factor.
    rows = Counter(instruction.row.name for instruction in sheet.instructions(old))
    before = {"True": (), "False": product.turn}.get(flag)
    count = rows[product.by]
    is_one = before is not None and count and rows == dict.fromkeys((*before, product.by), count)
    if not is_one or len(factors) != len(product.names):
        return new
    args = [arg.with_changes(keyword=None, equal=_POSITIONAL) for arg in factors]
    args[-1] = args[-1].with_changes(comma=_POSITIONAL)
    if flag == "False":
        args[0] = args[0].with_changes(
            value=sheet.parsed("nl.copy(nl.transpose({}))", args[0].value)
        )
    func = sheet.parsed(f"nisa.{product.by}")
    try:
        result = result_of(sheet, old, None, only=product.by)
    except NoResult:
        return new
    if result.is_new:
        return new
    return pending.add(Pending(old, new.with_changes(func=func, args=args), result, ""))


# ---- Kernels that return tiles on chip: `return tile` stores it in HBM first ---------------------
# Beta 1's simulator gives such tiles to the caller; later versions return only tensors in shared
# HBM. The evaluation determines which results these are.

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
    calls = (node for node in walk(sheet.tree) if isinstance(node, cst.Call))
    around = [scope_of(sheet, call) for call in calls if code(call.func) == name]
    if not places or any(is_evaluated(sheet, caller) for caller in around if caller is not None):
        return None  # other kernels use its tile
    whole = now.value
    values = whole.elements if isinstance(whole, cst.Tuple | cst.List) else [cst.Element(whole)]
    if max(places) >= len(values) or any(isinstance(v, cst.StarredElement) for v in values):
        text = "this returns tiles on the chip, and does not name them one by one"
        sheet.leave(old, text, "store them in tensors of nl.shared_hbm, and return those")
        return None
    stores = {place: _stored(sheet, pending, values[place].value) for place in places}
    sheet.done[STORED] += len(places)
    lines = [store_line for store_lines, _ in stores.values() for store_line in store_lines]
    new: cst.BaseExpression = stores[places[0]][1]
    if isinstance(whole, cst.Tuple | cst.List):
        elements = [
            element.with_changes(value=stores[place][1]) if place in stores else element
            for place, element in enumerate(values)
        ]
        new = whole.with_changes(elements=elements)
    lines.append(line.with_changes(body=[now.with_changes(value=new)], leading_lines=()))
    lines[0] = lines[0].with_changes(leading_lines=line.leading_lines)
    written: list[cst.BaseStatement] = []
    for each in lines:
        hoisted = Hoisting(sheet, pending).hoisted(each)
        written += hoisted if isinstance(hoisted, cst.FlattenSentinel) else [hoisted]
    return cst.FlattenSentinel(written)


def is_evaluated(sheet: Sheet, function: cst.FunctionDef) -> bool:
    """Whether the evaluation recorded instructions in a function."""
    span = sheet.span(function)
    return any(span.line <= at[0] <= span.end_line for at in sheet.facts.instructions)


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
    make = "{1} = nl.ndarray({0}.shape, dtype={0}.dtype, buffer=nl.shared_hbm)"
    for template in (make, "nl.store({1}, {0})"):
        line = cst.parse_statement(sheet.text(template, name, output))
        assert isinstance(line, cst.SimpleStatementLine)
        lines.append(line)
    return lines, cst.Name(output)


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
    if len(was.slice) == 1 and code(was.slice[0].slice) == "...":
        return None  # the whole tile: boxes of a mask were moved
    texts = [code(element.slice) for element in target.slice]
    if len(was.slice) == len(texts):  # numbers become slices of one element
        for place, element in enumerate(target.slice):
            part = element.slice.value if isinstance(element.slice, cst.Index) else None
            if part is not None and not isinstance(part, cst.Ellipsis | cst.Call):
                texts[place] = f"{texts[place]}:{number(texts[place]) + 1}"
    dst = f"{code(target.value)}[{', '.join(texts)}]"
    value = code(now.value)
    if sheet.tensors(was):  # a tile was made for the value, a number
        is_element = not any(isinstance(element.slice, cst.Slice) for element in was.slice)
        shape = f"({'1, ' * (len(was.slice) - 1)}1)" if is_element else f"{dst}.shape"
        value = sheet.text("nl.full({}, {}, dtype={}.dtype)", shape, value, was.value)
    sheet.done[MOVED] += 1
    return line.with_changes(
        body=[cst.Expr(sheet.parsed(f"nisa.{BY_DMA}({{}}, {{}})", dst, value))]
    )


def _is_transfer(instruction: Instruction) -> bool:
    """Whether it is a copy by DMA from one tile on chip to another."""
    if instruction.row.name != BY_DMA:
        return False
    views = [instruction.operand(name) for name in ("dst", "src")]
    return all(isinstance(view, View) and view.tensor.on_chip for view in views)


# ------------------------------------------------------------------------------------------------
# Statements on more axes than an instruction's tile has: loops over the first of them.
# Beta 1 splits such a statement; later versions leave that to the kernel. Only element-wise
# computations of tiles that the statement does not write may be split here.

UNROLLED = "axes of a statement as loops"
Loops = dict[int, tuple[str, str]]  # variable and trip count, by the place of the axis


def loops_of(sheet: Sheet, indices: Indices, line: cst.SimpleStatementLine) -> Loops:
    """Return the loops that a statement needs, from the outermost; none if it cannot be split."""
    part = line.body[0]
    if not isinstance(part, cst.Assign) or len(part.targets) != 1 or len(line.body) != 1:
        return {}
    target = part.targets[0].target
    if not isinstance(target, cst.Subscript) or not is_indexed(indices, target):
        return {}
    nodes = [target, *(n for n in walk(part.value) if isinstance(n, cst.BaseExpression))]
    instructions = [instruction for node in nodes for instruction in sheet.instructions(node)]
    written = [dst for instruction in instructions if (dst := dst_of(instruction)) is not None]
    min_rank = min((len(view.shape) for view in written), default=0)
    try:
        axes = [
            (index.ndim, place, str(dim.size))
            for node in nodes
            if isinstance(node, cst.Subscript) and is_indexed(indices, node)
            for index in sums(indices, node)
            for place, dim in moving(index)
        ]
    except NotSlices:
        return {}
    ranks = {rank for rank, _, _ in axes}
    if len(ranks) != 1 or not 1 < min_rank < max(ranks) or not _is_plain(indices, part.value):
        return {}
    # It must not read the tensor that it sets.
    own = set(map(id, _tensors(sheet.instructions(target), True)))
    if not own or not own.isdisjoint(map(id, _tensors(instructions, False))):
        return {}
    loops: Loops = {}
    for place in range(1, max(ranks) - min_rank + 1):
        counts = {count for _, axis, count in axes if axis == place}
        if len(counts) != 1:
            return {}
        loops[place] = (sheet.fresh("ijklmn"[(place - 1) % 6]), counts.pop())
    return loops


def _tensors(instructions: Sequence[Instruction], written: bool) -> Iterator[Tensor]:
    for instruction in instructions:
        for operand, view in zip(instruction.row.operands, instruction.operands, strict=True):
            if isinstance(view, View) and (operand.name == "dst") == written:
                yield view.tensor


def _is_plain(indices: Indices, value: cst.CSTNode) -> bool:
    """Whether the value consists of element-wise operations on numbers and parts of tensors."""
    match value:
        case cst.Subscript():
            return is_indexed(indices, value)
        case cst.BinaryOperation(left, _, right):
            return _is_plain(indices, left) and _is_plain(indices, right)
        case cst.UnaryOperation(_, inner):
            return _is_plain(indices, inner)
        case cst.Name():
            return not indices.is_tile(value) and not indices.has_index(value)
    return isinstance(value, cst.Integer | cst.Float)


def under(sheet: Sheet, loops: Loops, line: cst.SimpleStatementLine) -> cst.BaseStatement:
    sheet.done[UNROLLED] += 1
    statement: cst.BaseStatement = line.with_changes(leading_lines=())
    for name, count in reversed(loops.values()):
        statement = cst.For(
            cst.Name(name), cst.parse_expression(f"range({count})"), cst.IndentedBlock([statement])
        )
    return statement.with_changes(leading_lines=line.leading_lines)


# ---- Results whose type Beta 1 took from a number -----------------------------------------------
# A number was of a type of its own: `x * 0.3` made a float32 of bfloat16 or integers, and one
# instruction wrote it to `t` in `t[...] = x * 0.3`, rounded once. Since then, a number has the type
# of the tile. `dtype=` sets the type of the result.

ROUNDED = "a result that has its type from a number"
_TYPED = (*BINARY, "nki.language.mod", "nki.language.fmod")
_OPERATORS: dict[type[cst.BaseBinaryOp], str] = {
    cst.Add: "add",
    cst.Subtract: "subtract",
    cst.Multiply: "multiply",
    cst.Divide: "divide",
    cst.Modulo: "mod",
    cst.Power: "power",
}


def typed(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call:
    """Add the `dtype` that Beta 1 wrote to a call of `nki.language`."""
    name = sheet.name_of(old.func)
    if not sheet.function(old) or name not in _TYPED or keyword(old, "dtype") is not None:
        return new
    dtype = _with_number(sheet, old, True)
    if dtype is None:
        return new
    return with_args(new, [*new.args, named("dtype", sheet.nl(dtype.name))])


def operator(
    sheet: Sheet, old: cst.BinaryOperation, new: cst.BinaryOperation
) -> cst.BaseExpression:
    """Rewrite `x * y` to `nl.multiply(x, y, dtype=…)` if it needs a dtype."""
    name = _OPERATORS.get(type(old.operator), "")
    dtype = _with_number(sheet, old, bool(name))
    if dtype is None:
        return new
    call: cst.Call = sheet.parsed(
        f"nl.{name}({{}}, {{}}, dtype=nl.{dtype.name})", new.left, new.right
    )
    return call


def leave_added(sheet: Sheet, old: cst.AugAssign) -> None:
    """Report a `t[...] += x` with a wider `x` as left unchanged."""
    for instruction in sheet.instructions(old):
        dst = dst_of(instruction)
        if dst is not None and _twice({view.dtype for view in _inputs(instruction)}, dst.dtype):
            name = dst.dtype.name
            text = f"this was rounded to {name} once, and would now be rounded twice"
            sheet.leave(old, text, f"write it as a function of nl with dtype=nl.{name}")
            return


def _with_number(sheet: Sheet, node: cst.CSTNode, is_known: bool) -> DType | None:
    """Return the type that an expression wrote, if that is not the one of all tiles in it.

    Two tiles of different types still give what they gave, and comparisons a byte. Reports it as
    left if its runs wrote several types, or nl has no function for it that `is_known`.
    """
    runs = _runs(sheet, node)
    written = {dtype for _, dtype in runs}
    other = [(inputs, dtype) for inputs, dtype in runs if len(inputs) == 1 and inputs != {dtype}]
    if not other or not all(dtype.is_float or dtype is INT32 for dtype in written):
        return None
    if is_known and len(written) == 1:
        sheet.done[ROUNDED] += 1
        return written.pop()
    (now,), was = other[0]
    text = f"a number made this {was.name}, and it would now be {now.name}"
    sheet.leave(node, text, "write it as a function of nl with the dtype that it had")
    return None


def _runs(sheet: Sheet, node: cst.CSTNode) -> list[tuple[set[DType], DType]]:
    """Return the types of tiles that each run of an expression read, and the one that it wrote."""
    own = set(map(id, sheet.tensors(node)))
    read: dict[int, set[DType]] = {}  # by what a tensor of the expression's own was made from
    made: dict[int, DType] = {}
    runs = []
    for instruction in sheet.instructions(node):
        inputs: set[DType] = set()
        for view in _inputs(instruction):
            is_own = id(view.tensor) in own
            inputs |= read.get(id(view.tensor), set()) if is_own else {view.dtype}
            made.pop(id(view.tensor), None)
        dst = dst_of(instruction)
        if dst is None:
            continue
        if id(dst.tensor) in own:
            read.setdefault(id(dst.tensor), set()).update(inputs)
            made[id(dst.tensor)] = dst.dtype
        else:
            runs.append((inputs, dst.dtype))
    return [*runs, *((read[number], dtype) for number, dtype in made.items())]


def _inputs(instruction: Instruction) -> Iterator[View]:
    for operand, view in zip(instruction.row.operands, instruction.operands, strict=True):
        if operand.name != "dst" and isinstance(view, View):
            yield view


def _twice(inputs: set[DType], dtype: DType) -> bool:
    """Whether the result of operands of these types is rounded before it becomes `dtype`."""
    is_rounded = bool(inputs) and FLOAT32 not in inputs and all(i.is_float for i in inputs)
    is_other = any(i is not dtype and i.size >= dtype.size for i in inputs)
    return dtype.is_float and is_rounded and is_other


# ---- Numbers that the body of a loop changes -----------------------------------------------------
# Beta 1 traced the body of such a loop once, so `address += size` in it gave every iteration the
# same address. `range` runs the body anew for each iteration, so each iteration must start with the
# value from before the loop. Source: NKI's documentation up to SDK 2.26, nki.language.affine_range.

CARRIED = "a number that a loop changes"
_TRACED = ("nki.language.affine_range", "nki.language.sequential_range")


def is_traced(sheet: Sheet, loop: cst.For) -> bool:
    call = loop.iter
    return isinstance(call, cst.Call) and sheet.name_of(call.func) in _TRACED


def restored(
    indices: Indices, old: cst.For, new: cst.For
) -> cst.FlattenSentinel[cst.BaseStatement]:
    """Return the loop after copies of the loop-carried numbers, which its body restores."""
    names = _carried(indices, old)
    if not names or not isinstance(new.body, cst.IndentedBlock):
        return cst.FlattenSentinel([new])
    indices.sheet.done[CARRIED] += len(names)
    copies = {name: indices.sheet.fresh(f"{name}_before") for name in names}
    first, *lines = [cst.parse_statement(f"{copy} = {name}") for name, copy in copies.items()]
    before = [first.with_changes(leading_lines=new.leading_lines), *lines]
    back = [cst.parse_statement(f"{name} = {copy}") for name, copy in copies.items()]
    body = new.body.with_changes(body=[*back, *new.body.body])
    return cst.FlattenSentinel([*before, new.with_changes(body=body, leading_lines=())])


def _carried(indices: Indices, loop: cst.For) -> list[str]:
    nodes = [*walk(loop.body)]
    names = dict.fromkeys(n for node in nodes if isinstance(node, _SETS) for n in set_by(node))
    uses = ((name, _read_first(indices, name, nodes)) for name in names)
    return [name for name, use in uses if use and _is_number(indices, use, frozenset())]


def _read_first(indices: Indices, name: str, nodes: Sequence[cst.CSTNode]) -> cst.Name | None:
    """Return a place in a loop's body that may read the name before the body sets it."""
    setters = [node for node in nodes if name in set_by(node)]
    for use in nodes:
        if not isinstance(use, cst.Name) or use.value != name:
            continue
        around = next(indices.sheet.parents(use))
        is_word = isinstance(around, cst.Arg) and around.keyword is use
        is_field = isinstance(around, cst.Attribute) and around.attr is use
        is_read = not isinstance(around, cst.AssignTarget) and not is_word and not is_field
        if is_read and not any(indices.flow.dominates(s, use) for s in setters):
            return use
    return None


def _is_number(indices: Indices, node: cst.BaseExpression, seen: frozenset[str]) -> bool:
    """Whether the value is a Python number; a tile keeps the value of the last iteration."""
    match node:
        case cst.Name(name):
            return name in seen or _is_set_to_numbers(indices, node, seen | {name})
        case cst.Attribute(attr=cst.Name(name)):
            return name in _SIZES
        case cst.Subscript(cst.Attribute() as owner):
            return _is_number(indices, owner, seen)
        case cst.Call(function, args):
            plain = any(indices.sheet.is_builtin(function, name) for name in _PURE)
            return plain and all(_is_number(indices, arg.value, seen) for arg in args)
    inside = [child for child in children(node) if isinstance(child, cst.BaseExpression)]
    return isinstance(node, _PLAIN) and all(_is_number(indices, value, seen) for value in inside)


def _is_set_to_numbers(indices: Indices, name: cst.Name, seen: frozenset[str]) -> bool:
    """Whether every value of the name in its function is a number; a loop's counter is."""
    scope = scope_of(indices.sheet, name)
    setters = [node for node in walk(scope or indices.sheet.tree) if name.value in set_by(node)]
    values = [value for _, value in indices.definitions(name)]
    values += [setter.value for setter in setters if isinstance(setter, cst.AugAssign)]
    counted = any(isinstance(setter, cst.For) for setter in setters)
    return (counted or bool(values)) and all(_is_number(indices, value, seen) for value in values)


_SETS = cst.Assign | cst.AugAssign
_PLAIN = cst.Integer | cst.Float | cst.BinaryOperation | cst.UnaryOperation | cst.IfExp
_PURE = ("min", "max", "len", "int", "float", "abs", "round")
_SIZES = ("shape", "itemsize", "size", "ndim")


# ---- `nl.loop_reduce`: a result that is folded over the iterations of a loop --------------------
# `t[...] = nl.loop_reduce(x, op=np.add, loop_indices=[k])` becomes `t[...] = nl.copy(x)` in the
# first iteration and `t[...] = nl.add(t[...], x)` in the others. Source: nki.language.loop_reduce,
# SDK 2.26.

REDUCE = "nki.language.loop_reduce"
_PARAMETERS = ("x", "op", "loop_indices")
_RANGES = ("affine_range", "sequential_range", "static_range")
_IDENTITY = {"add", "multiply", "maximum", "minimum"}


def folded(sheet: Sheet, old: cst.SimpleStatementLine, new: cst.SimpleStatementLine) -> Any:
    """Return the statements that replace a fold.

    Returns None for others, and if the first iteration cannot be determined.
    """
    match (old.body[0], new.body[0]):
        case (
            cst.Assign(value=cst.Call() as call) as was,
            cst.Assign((cst.AssignTarget(cst.Subscript() as target), *_), cst.Call() as now),
        ) if sheet.name_of(call.func) == REDUCE and is_plain(call):
            operator, indices = (
                find(call, _PARAMETERS, "op"),
                find(call, _PARAMETERS, "loop_indices"),
            )
            name = sheet.name_of(operator.value).rpartition(".")[2] if operator is not None else ""
            name = versions.OPERATORS.get(name, name)
            first = _first(sheet, call, indices.value) if indices is not None else ""
            value = find(now, _PARAMETERS, "x")
            if name not in _IDENTITY or not first or value is None:
                return None
            if not _is_kept(sheet, call, was):
                return None
            parts = code(target), code(value.value)
            begin, others = (
                cst.IndentedBlock([cst.parse_statement(sheet.text(template, *parts))])
                for template in ("{0} = nl.copy({1})", f"{{0}} = nl.{name}({{0}}, {{1}})")
            )
            test = cst.parse_expression(first)
            return cst.If(test, begin, cst.Else(others), leading_lines=new.leading_lines)
    return None


def _first(sheet: Sheet, call: cst.Call, indices: cst.BaseExpression) -> str:
    """Return the condition for the first iteration of the folded loops."""
    if not isinstance(indices, cst.List | cst.Tuple):
        return ""
    names = [code(element.value) for element in indices.elements]
    counted = all(_counts(sheet, call, name) for name in names)
    return " and ".join(f"{name} == 0" for name in names) if counted else ""


def _counts(sheet: Sheet, call: cst.Call, name: str) -> bool:
    """Whether the name counts a loop around the call from 0."""
    for parent in sheet.parents(call):
        match parent:
            case cst.For(target, head) if code(target) == name:
                is_range = isinstance(head, cst.Call) and len(head.args) == 1
                return is_range and sheet.function(cast(cst.Call, head)) in _RANGES
    return False


def _is_kept(sheet: Sheet, call: cst.Call, part: cst.Assign) -> bool:
    """Whether the call has no mask, and its sum has the element type of the target."""
    if mask_argument(call) is not None:
        return False
    target = part.targets[0].target
    name = code(target.value) if isinstance(target, cst.Subscript) else ""
    every = (t for tensors in sheet.facts.tensors.values() for t in tensors)
    dtypes = {t.dtype for t in every if t.name == name}
    own = {tensor.dtype for tensor in sheet.tensors(call)}
    return len(dtypes) == 1 and own <= dtypes


# ---- Statements that read elements that a mask may have skipped ---------------------------------
# If every write of a tile is under a condition, values computed from it elsewhere are as undefined
# as the tile, and Beta 1 writes nothing. The new source must not read an unwritten tile, so such a
# statement gets the same condition. Source: NKI's documentation up to SDK 2.26, masking.

_UNWRITTEN = ("nki.language.ndarray", "nki.language.empty")


class Hidden:
    """Records the conditions of the statements written so far."""

    def __init__(self, blocks: Blocks) -> None:
        self.indices = blocks.indices
        self.sheet = blocks.sheet
        self._places = blocks.places
        self._conditions: dict[int, str] = {}  # of statements, by their parts

    def note(self, part: cst.BaseSmallStatement, condition: str) -> None:
        self._conditions[id(part)] = condition

    def condition(self, part: cst.BaseSmallStatement) -> str:
        """Return the condition on which a statement's inputs exist, if any was skipped, or ""."""
        names = {name.value: name for name in _read(part)}
        conditions = {self._of_tile(name, part) for name in names.values()} - {""}
        return conditions.pop() if len(conditions) == 1 else ""

    def _of_tile(self, name: cst.Name, part: cst.BaseSmallStatement) -> str:
        """Return the condition of all writes of a tile that the statement reads."""
        values = self.indices.definitions(name)
        maker = self._place(values[0][1]) if len(values) == 1 else None
        if maker is None or not self._is_left_out(values[0][1], part):
            return ""
        if self.sheet.name_of(getattr(values[0][1], "func", maker)) not in _UNWRITTEN:
            return ""
        writers = [*self._writers(name)]
        conditions = {
            self._conditions.get(id(node), "") if node is not None else "" for node in writers
        }
        text = conditions.pop() if len(conditions) == 1 else ""
        if not text:
            return ""
        read = [*names_in(cst.parse_expression(text))]
        same = self.indices.flow.is_same
        uses = (part, *(writer for writer in writers if writer is not None))
        return text if all(same(n.value, maker, use) for n in read for use in uses) else ""

    def _place(self, expression: cst.BaseExpression) -> cst.CSTNode | None:
        """Return the statement that makes a tile, or before which it is made in the new source."""
        around = [*self.sheet.parents(expression)]
        moved = (self._places[id(node)] for node in around if id(node) in self._places)
        assigned = (node for node in around if isinstance(node, cst.Assign))
        return next(moved, None) or next(assigned, None)

    def _writers(self, name: cst.Name) -> Iterator[cst.CSTNode | None]:
        """Yield the statements that write the tile of a name; None for a possible write: the tile
        is passed for an output, or to a function of the kernel's own.
        """
        scope = scope_of(self.sheet, name)
        if scope is None:
            yield None
            return
        for node in walk(scope.body):
            if isinstance(node, cst.Assign | cst.AugAssign):
                target = only_target(node)
                is_part = isinstance(target, cst.Subscript) and _base(target) == name.value
                if target is None or is_part:
                    yield node
            elif isinstance(node, cst.Call):
                is_local = not self.sheet.name_of(node.func).startswith("nki.")
                passed = [arg for arg in node.args if _base(arg.value) == name.value]
                if any(is_local or keyword_of(arg) in OUTPUTS for arg in passed):
                    yield None

    def _is_left_out(self, maker: cst.BaseExpression, part: cst.BaseSmallStatement) -> bool:
        """Whether, in some iteration, the statement did not read the tile that was made there."""
        nodes = (node for node in walk(part) if isinstance(node, cst.BaseExpression))
        spots = {self.sheet.spot(node) for node in (part, *nodes)}
        for facts in self.sheet.facts.of_all_shapes:
            instructions = (i for at in spots for i in facts.instructions.get(at, ()))
            used = {id(v.tensor) for i in instructions for v in i.operands if isinstance(v, View)}
            if {*map(id, facts.tensors.get(self.sheet.spot(maker), ()))} - used:
                return True
        return False


def _read(part: cst.BaseSmallStatement) -> Iterator[cst.Name]:
    """Return the names in what is assigned to a part of a tile, or passed to a call."""
    match part:
        case cst.Expr(value) | cst.Assign((cst.AssignTarget(cst.Subscript()), *_), value):
            return names_in(value)
    return iter(())


def _base(node: cst.BaseExpression) -> str:
    """Return the name of what is indexed, or the name itself."""
    while isinstance(node, cst.Subscript):
        node = node.value
    return node.value if isinstance(node, cst.Name) else ""


# ------------------------------------------------------------------------------------------------
# `return` in a loop whose body Beta 1 traced once: it ended the function after all iterations.
# Python ends it in the first iteration, so the statement moves after the loop. Source: NKI's
# documentation up to SDK 2.26, nki.language.affine_range, and its tutorial on layouts.

LEAVING = "a return in a loop"


def without_return(
    sheet: Sheet, old: cst.For, new: cst.For
) -> tuple[cst.For, cst.SimpleStatementLine | None]:
    """Return the loop, and the `return` at its end for after it; other returns are left."""
    line: cst.SimpleStatementLine | None = None
    match new.body:
        case cst.IndentedBlock((*others, cst.SimpleStatementLine((cst.Return(),)) as line)):
            statements = others or [cst.SimpleStatementLine([cst.Pass()])]
            new = new.with_changes(body=new.body.with_changes(body=statements))
            sheet.done[LEAVING] += 1
    if any(True for _ in _returns(new)):
        first = next(_returns(old))
        text = "a `return` that is not the last statement of a loop, whose body was traced once"
        sheet.leave(first, text, "write the `return` after the loop")
    return new, line


def _returns(node: cst.CSTNode) -> Iterator[cst.Return]:
    for child in children(node):
        if isinstance(child, cst.Return):
            yield child
        elif not isinstance(child, cst.FunctionDef | cst.Lambda):
            yield from _returns(child)
