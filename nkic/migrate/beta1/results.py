"""Instructions that return tiles: the tile is made first, and passed as `dst`.

Shape, element type and memory are the evaluated ones, expressed by an operand that has the same in
every evaluation, if there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import libcst as cst

from nkic.language.versions.rewritten import COPIED, SIZES
from nkic.machine.operands import Row
from nkic.machine.targets import Buffer
from nkic.migrate.beta1.indices import code, tuple_of
from nkic.migrate.calls import COMMA, find, keyword_of, keyword_value, named
from nkic.migrate.facts import Facts, dst_of
from nkic.migrate.sheet import Sheet, names_in, names_set, only_target, walk
from nkic.migrate.sheet import code as sheet_code
from nkic.program.program import Instruction, Tensor, View


class NoResult(Exception):
    """The result of an instruction cannot be expressed; the text explains why."""


class Result(NamedTuple):
    """The evaluated results of a call.

    `is_new`: each is a tile of its own; otherwise the instruction wrote what the statement assigns
    to. `part` are the slices of the tile that a mask selects, "" for all of it.
    """

    row: Row
    tensors: tuple[Tensor, ...]
    instructions: tuple[Instruction, ...]
    is_new: bool
    part: str = ""


def result_of(
    sheet: Sheet, call: cst.Call, row: Row | None, facts: Facts | None = None, only: str = ""
) -> Result:
    """Return the evaluated results of a call.

    `row` is None if any single instruction is acceptable; `only` names the instruction that counts.
    Raises `NoResult`.
    """
    at = sheet.spot(call)
    facts = facts or sheet.facts
    instructions = facts.instructions.get(at, ())
    if not instructions:
        raise NoResult(
            "the evaluation did not reach it"
            if facts.is_evaluated
            else "the kernel was not evaluated, so its shape is unknown"
        )
    if row is not None:
        instructions = _without_copies(instructions, row)
    if only:
        instructions = tuple(i for i in instructions if i.row.name == only)
    rows = {i.row.name for i in instructions}
    if len(rows) != 1 or (row is not None and rows != {row.name}):
        raise NoResult(f"it is made of several instructions: {', '.join(sorted(rows))}")
    tensors = tuple(dst.tensor for i in instructions if (dst := dst_of(i)) is not None)
    written = {id(tensor) for tensor in tensors}
    new = [tensor for tensor in facts.tensors.get(at, ()) if id(tensor) in written]
    are_new = {any(tensor is new_tensor for new_tensor in new) for tensor in tensors}
    if len(are_new) != 1:
        raise NoResult("it writes a tile of its own only in some iterations")
    if are_new == {True} and len(tensors) != len(new):
        raise NoResult("it is made of several instructions in one iteration")
    return Result(instructions[0].row, tensors, instructions, are_new == {True})


def _without_copies(instructions: Sequence[Instruction], row: Row) -> tuple[Instruction, ...]:
    """Leave out the copies from PSUM that precede an instruction that cannot read it.

    The new source has such copies explicitly.
    """
    if row.name not in COPIED:
        return tuple(instructions)
    sources = [i.operand(COPIED[row.name]) for i in instructions if i.row.name == row.name]
    used = {id(view.tensor) for view in sources if isinstance(view, View)}

    def is_copy(instruction: Instruction) -> bool:
        dst = dst_of(instruction)
        return instruction.row.name not in COPIED and dst is not None and id(dst.tensor) in used

    return tuple(instruction for instruction in instructions if not is_copy(instruction))


class Lookup(NamedTuple):
    """Queries about the names and indices of the new source.

    `is_tensor`: whether a name is one tensor and not a list. `sizes`: the sizes of a part of a
    named tensor ("" for a list's), none if its index does not tell them. `tile`: a list's tile that
    is used as a whole, as text, "" for everything else. `target`: the part of a tensor that the
    call is assigned to, "" if it is not made of slices.
    """

    is_tensor: Callable[[cst.Name], bool]
    sizes: Callable[[cst.BaseExpression, str], Sequence[str]]
    tile: Callable[[cst.BaseExpression], str]
    target: str = ""


def allocation(
    sheet: Sheet, result: Result, call: cst.Call, lookup: Lookup, counts: str = ""
) -> str:
    """Return the expression that makes the tile.

    It is valid for all evaluated shapes, or else for the given ones. Raises `NoResult`.
    """
    for candidate in (_of_all(sheet, result, call), result):
        try:
            return _allocation(sheet, candidate, call, lookup, counts)
        except NoResult as failure:
            last = failure
    raise last


def _of_all(sheet: Sheet, result: Result, call: cst.Call) -> Result:
    for facts in sheet.facts.of_other_shapes:
        try:
            variant = result_of(sheet, call, result.row, facts)
        except NoResult:
            continue
        result = result._replace(
            tensors=(*result.tensors, *variant.tensors),
            instructions=(*result.instructions, *variant.instructions),
        )
    return result


def _allocation(sheet: Sheet, result: Result, call: cst.Call, lookup: Lookup, counts: str) -> str:
    """Return `nl.ndarray(data.shape, dtype=data.dtype, buffer=nl.sbuf)`.

    `counts` is the shape of what is loaded, if its index tells it.
    """
    operands = _operands(result, call, lookup)
    try:
        shape = _shape(result, operands, counts)
    except NoResult:
        if not lookup.target or not _is_like_target(sheet, result, call):
            raise
        shape = f"{lookup.target}.shape"
    dtype = _dtype(sheet, result, call, operands)
    buffers = {tensor.buffer for tensor in result.tensors}
    if len(buffers) != 1:
        raise NoResult("it is not always in the same memory")
    buffer = code(sheet.nl(buffers.pop().value))
    make = code(sheet.nl("ndarray"))
    return f"{make}({shape}, dtype={dtype}, buffer={buffer})"


def _is_like_target(sheet: Sheet, result: Result, call: cst.Call) -> bool:
    """Whether every result was copied to a part of its own shape."""
    statement = next(sheet.parents(call))
    target = statement.targets[0].target if isinstance(statement, cst.Assign) else None
    instructions = sheet.instructions(target) if target is not None else ()
    shapes = [dst.shape for i in instructions if (dst := dst_of(i)) is not None]
    return shapes == [tensor.shape for tensor in result.tensors]


class Operand(NamedTuple):
    """An operand's expression and its evaluated views.

    The expression is a tensor's name, or a part of one whose sizes the index tells. The name is ""
    for a part of a list of tiles.
    """

    name: str
    sizes: tuple[str, ...]
    views: tuple[View, ...]

    @property
    def is_whole(self) -> bool:
        """Whether it is a tensor by name."""
        return not self.sizes

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Its evaluated shapes."""
        return [view.tensor.shape if self.is_whole else view.shape for view in self.views]

    def size(self, dim: int) -> str:
        """Return the text for one of its sizes."""
        dim %= len(self.shapes[0])
        return f"{self.name}.shape[{dim}]" if self.is_whole else self.sizes[dim]


def _operands(result: Result, call: cst.Call, lookup: Lookup) -> dict[str, Operand]:
    """Return, by name, the operands that are names, or parts with known sizes."""
    operands: dict[str, Operand] = {}
    for operand in result.row.operands:
        argument = find(call, result.row.parameters[1:], operand.name)
        values = [instruction.operand(operand.name) for instruction in result.instructions]
        views = tuple(value for value in values if isinstance(value, View))
        if argument is None or len(views) != len(values):
            continue
        value = argument.value
        base = value.value if isinstance(value, cst.Subscript) else value
        name = base.value if isinstance(base, cst.Name) and lookup.is_tensor(base) else ""
        if tile := lookup.tile(value):
            operands[operand.name] = Operand(tile, (), views)
            continue
        sizes = tuple(lookup.sizes(value, name))
        fits = {len(view.shape) for view in views} == {len(sizes)}
        if name and base is value:
            operands[operand.name] = Operand(name, (), views)
        elif fits:
            operands[operand.name] = Operand(name, sizes, views)
    return operands


def _shape(result: Result, operands: Mapping[str, Operand], counts: str) -> str:
    shapes = [tensor.shape for tensor in result.tensors]
    for operand in operands.values():
        if operand.is_whole and operand.shapes == shapes:
            return f"{operand.name}.shape"
    if counts:
        return counts
    ranks = {len(shape) for shape in shapes}
    if len(ranks) != 1:
        raise NoResult("its shape changes from iteration to iteration")
    for operand in operands.values():
        if operand.shapes == shapes:
            return tuple_of(operand.sizes)
    texts = [_size(result, operands, dim) for dim in range(ranks.pop())]
    return tuple_of(texts)


def _size(result: Result, operands: Mapping[str, Operand], dim: int) -> str:
    """Return the text for one dimension: that of an operand with the same sizes, or a number."""
    sizes = [tensor.shape[dim] for tensor in result.tensors]
    rank = len(result.tensors[0].shape)
    wanted, operand_dim = SIZES.get(result.row.name, {}).get(dim, ("", dim))
    for name, operand in operands.items():
        shapes = operand.shapes
        fits = all(len(shape) > max(operand_dim, 0) for shape in shapes)
        is_like = dim == 0 or all(len(shape) == rank for shape in shapes)
        is_it = name == wanted if wanted else is_like
        if is_it and fits and [shape[operand_dim] for shape in shapes] == sizes:
            return operand.size(operand_dim)
    if len(set(sizes)) != 1:
        raise NoResult("its shape changes from iteration to iteration")
    return str(sizes[0])


def _dtype(sheet: Sheet, result: Result, call: cst.Call, operands: Mapping[str, Operand]) -> str:
    dtype = keyword_value(call, "dtype")
    if dtype is not None:
        return code(dtype)
    dtypes = [tensor.dtype for tensor in result.tensors]
    for operand in operands.values():
        if operand.name and [view.dtype for view in operand.views] == dtypes:
            return f"{operand.name}.dtype"
    if len(set(dtypes)) != 1:
        raise NoResult("its element type changes from iteration to iteration")
    return code(sheet.nl(dtypes[0].name))


# ---- Move instructions inside expressions to lines of their own before the statement ------------
# During the traversal, each such call is replaced by a placeholder name; the enclosing statement
# then writes the tile, the instruction with its dst, and the tile's name for the placeholder.

RESULTS = "an instruction that returned a tile"
RETURNING = "make dst with nl.ndarray, and pass it"
TARGET = "__target"  # in a tile's expression: what the statement assigns the tile to


class Pending(NamedTuple):
    """A call that returns a tile: its old and new form, its result, and the expression that makes
    the tile.
    """

    old: cst.Call
    new: cst.Call
    result: Result
    maker: str


class PendingCalls:
    """The calls that no statement has written yet, by placeholder."""

    def __init__(self) -> None:
        self._calls: dict[str, Pending] = {}
        self._count = 0

    def add(self, call: Pending) -> cst.Name:
        """Register a call, and return its placeholder."""
        self._count += 1
        name = f"__pending_{self._count}"
        self._calls[name] = call
        return cst.Name(name)

    def get(self, node: cst.CSTNode | None) -> Pending | None:
        """Return the call that a placeholder stands for; None for other nodes."""
        return self._calls.get(node.value) if isinstance(node, cst.Name) else None

    def inside(self, node: cst.CSTNode) -> Iterator[cst.Name]:
        """Yield the placeholders in a node, those nested in calls first."""
        for name in names_in(node):
            if (call := self.get(name)) is not None:
                yield from self.inside(call.new)
                yield name

    def restored(self, tree: cst.Module, sheet: Sheet) -> cst.Module:
        """Return the tree with the original calls for placeholders that no statement wrote."""
        while placeholders := [name for name in names_in(tree) if name.value in self._calls]:
            calls: dict[str, cst.BaseExpression] = {}
            for placeholder in placeholders:
                call = self._calls[placeholder.value]
                text = "the result of this is used where no statement can precede it"
                sheet.leave(call.old, text, RETURNING)
                calls[placeholder.value] = call.new
            tree = replaced_names(tree, calls)
        return tree


class Hoisting:
    """The lines of one statement."""

    def __init__(self, sheet: Sheet, pending: PendingCalls) -> None:
        self.sheet = sheet
        self.pending = pending
        self.lines: list[cst.SimpleStatementLine] = []
        self.names: dict[str, cst.BaseExpression] = {}

    def hoisted(self, statement: cst.SimpleStatementLine, condition: str = "") -> Any:
        """Return the statement, or all the lines that replace it.

        Under a condition, the tiles are made outside it.
        """
        names = [*self.pending.inside(statement)]
        if not names:
            return _under(condition, [], [statement]) if condition else statement
        needed = [self._written(name, statement.body[0]) for name in names]
        if all(needed):
            remaining = replaced_names(statement, self.names)
            self.lines.append(remaining.with_changes(leading_lines=()))
        self.lines[0] = self.lines[0].with_changes(leading_lines=statement.leading_lines)
        trailing = statement.trailing_whitespace
        self.lines[-1] = self.lines[-1].with_changes(trailing_whitespace=trailing)
        if condition:
            lines = [line for line in self.lines if is_allocation(line)]
            return _under(condition, lines, [line for line in self.lines if line not in lines])
        return cst.FlattenSentinel(self.lines)

    def _written(self, name: cst.Name, statement: cst.BaseSmallStatement) -> bool:
        """Write one call, and return whether the statement is still needed."""
        call = self.pending.get(name)
        assert call is not None
        new = replaced_names(call.new, self.names)
        is_value = getattr(statement, "value", None) is name
        if not call.result.is_new:
            return self._onto_target(name.value, call, new, statement if is_value else None)
        self.sheet.done[RESULTS] += 1
        target = only_target(statement) if is_value else None
        is_new_name = isinstance(target, cst.Name) and not _mentions(new, target.value)
        plain = is_new_name and isinstance(statement, cst.Assign | cst.AnnAssign)
        tile = (
            target.value
            if plain and isinstance(target, cst.Name)
            else self.sheet.fresh(_tile_name(statement, call))
        )
        maker = call.maker.replace(TARGET, sheet_code(target)) if target is not None else call.maker
        self.lines.append(_allocated(statement if plain else None, tile, maker))
        dst = f"{tile}[{call.result.part}]" if call.result.part else tile
        self.lines.append(_line(_with_dst(new, cst.parse_expression(dst))))
        self.names[name.value] = cst.Name(tile)
        return not plain

    def _onto_target(
        self, name: str, call: Pending, new: cst.Call, statement: cst.BaseSmallStatement | None
    ) -> bool:
        """Write `t[...] = instruction(...)`, or `+=` in PSUM, with t as dst."""
        target = only_target(statement) if statement is not None else None
        if target is None:
            text = "the target of this is unknown: it is part of an expression"
            self.sheet.leave(call.old, text, RETURNING)
            self.names[name] = new
            return True
        self.sheet.done[RESULTS] += 1
        self.lines.append(_line(_with_dst(new, target)))
        return False


def is_allocation(line: cst.SimpleStatementLine) -> bool:
    """Whether the line makes a tile: `t = nl.ndarray(…)`."""
    statement = line.body[0]
    value = statement.value if isinstance(statement, cst.Assign | cst.AnnAssign) else None
    name = value.func if isinstance(value, cst.Call) else None
    return isinstance(name, cst.Attribute) and name.attr.value == "ndarray"


def _under(
    condition: str,
    before: Sequence[cst.SimpleStatementLine],
    lines: Sequence[cst.SimpleStatementLine],
) -> Any:
    """Return `if condition:` with the lines inside."""
    if not lines:
        return cst.FlattenSentinel(before)
    first, *others = lines
    leading = () if before else first.leading_lines
    inside = first.with_changes(leading_lines=first.leading_lines if before else ())
    test = cst.parse_expression(condition)
    conditional = cst.If(test, cst.IndentedBlock([inside, *others]), leading_lines=leading)
    return cst.FlattenSentinel([*before, conditional])


def replaced_names(node: Any, names: Mapping[str, cst.BaseExpression]) -> Any:
    """Return the node with expressions substituted for names."""
    return node.visit(_Names(names)) if names else node


class _Names(cst.CSTTransformer):
    def __init__(self, names: Mapping[str, cst.BaseExpression]) -> None:
        super().__init__()
        self.names = names

    def leave_Name(  # noqa: N802
        self, original_node: cst.Name, updated_node: cst.Name
    ) -> cst.BaseExpression:
        """Return the expression for the name."""
        return self.names.get(original_node.value, updated_node)


def _tile_name(statement: cst.BaseSmallStatement, call: Pending) -> str:
    """Return a name for an unnamed tile, from the statement's target and the tile's memory."""
    target = only_target(statement)
    if isinstance(target, cst.Name) and _mentions(call.new, target.value):
        return f"new_{target.value}"
    while isinstance(target, cst.Subscript):
        target = target.value
    if not isinstance(target, cst.Name):
        return "tile"
    in_psum = any(tensor.buffer is Buffer.PSUM for tensor in call.result.tensors)
    return f"{target.value}_{'psum' if in_psum else 'tile'}"


def _allocated(
    statement: cst.BaseSmallStatement | None, tile: str, maker: str
) -> cst.SimpleStatementLine:
    """Return `tile = nl.ndarray(...)`, with the statement's annotation."""
    value = cst.parse_expression(maker)
    if isinstance(statement, cst.AnnAssign):
        return cst.SimpleStatementLine([statement.with_changes(value=value)])
    return cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(tile))], value)])


def _with_dst(call: cst.Call, dst: cst.BaseExpression) -> cst.Call:
    by_name = bool(call.args) and all(keyword_of(arg) for arg in call.args)
    first = named("dst", dst) if by_name else cst.Arg(dst)
    args = [first.with_changes(comma=COMMA), *call.args] if call.args else [first]
    return call.with_changes(args=args)


def _mentions(node: cst.CSTNode, name: str) -> bool:
    return any(inner.value == name for inner in names_in(node))


def _line(value: cst.BaseExpression) -> cst.SimpleStatementLine:
    return cst.SimpleStatementLine([cst.Expr(value)])


def joined(statements: Sequence[cst.BaseStatement]) -> list[cst.BaseStatement]:
    """Merge neighbouring statements under the same condition."""
    merged: list[cst.BaseStatement] = []
    for statement in statements:
        last = merged[-1] if merged else None
        if isinstance(statement, cst.If) and isinstance(last, cst.If) and _is_like(last, statement):
            assert isinstance(last.body, cst.IndentedBlock)
            assert isinstance(statement.body, cst.IndentedBlock)
            first, *others = statement.body.body
            if isinstance(first, cst.SimpleStatementLine):
                first = first.with_changes(leading_lines=statement.leading_lines)
            body = last.body.with_changes(body=[*last.body.body, first, *others])
            merged[-1] = last.with_changes(body=body)
        else:
            merged.append(statement)
    return merged


def _is_like(last: cst.If, following: cst.If) -> bool:
    """Whether the second statement can be merged into the first: its condition is equal and
    unchanged there.
    """
    blocks = isinstance(last.body, cst.IndentedBlock) and isinstance(
        following.body, cst.IndentedBlock
    )
    if last.orelse is not None or following.orelse is not None or not blocks:
        return False
    names = {node.value for node in names_in(following.test)}
    is_changed = any(set(names_set(node)) & names for node in walk(last.body))
    return not is_changed and sheet_code(last.test) == sheet_code(following.test)
