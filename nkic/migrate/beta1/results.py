"""Instructions that return tiles: the tile is made first, and passed as `dst`.

Shape, element type and memory are the evaluated ones, expressed by an operand that has the same in
every evaluation, if there is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import libcst as cst

from nkic.language.versions import COPIED, SIZES
from nkic.machine.operands import Row
from nkic.machine.targets import Buffer
from nkic.migrate.beta1.blocks import Blocks
from nkic.migrate.beta1.indices import code, tuple_of
from nkic.migrate.beta1.slices import sizes as sizes_of
from nkic.migrate.calls import COMMA, find, keyword_of, keyword_value, named, with_args
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
    statement = next(sheet.parents(call))
    is_named = isinstance(only_target(statement), cst.Name)
    views = [dst for i in instructions if (dst := dst_of(i)) is not None]
    tensors = tuple(view.tensor for view in views)
    written = {id(tensor) for tensor in tensors}
    new = [tensor for tensor in facts.tensors.get(at, ()) if id(tensor) in written]
    are_new = {any(tensor is new_tensor for new_tensor in new) for tensor in tensors}
    if len(are_new) != 1:
        raise NoResult("it writes a tile of its own only in some iterations")
    if are_new == {True} and len(tensors) != len(new):
        raise NoResult("it is made of several instructions in one iteration")
    if are_new == {False} and is_named and not isinstance(statement, cst.AugAssign):
        # It wrote straight to what a later statement assigns the name to.
        made = ((view, view.tensor) for view in views)
        own = (Tensor(-1, t.name, v.dtype, v.shape, t.buffer, t.at) for v, t in made)
        return Result(instructions[0].row, tuple(own), instructions, True)
    return Result(instructions[0].row, tensors, instructions, are_new == {True})


def _without_copies(instructions: Sequence[Instruction], row: Row) -> tuple[Instruction, ...]:
    """Leave out the copies from PSUM that precede an instruction that cannot read it.

    The new source has such copies explicitly.
    """
    if row.name not in COPIED:
        return tuple(instructions)
    sources = [i.operand(COPIED[row.name]) for i in instructions if i.row.name == row.name]
    used = {id(view.tensor) for view in sources if isinstance(view, View)}
    written = ((i, dst_of(i)) for i in instructions)
    return tuple(
        i for i, dst in written if i.row.name in COPIED or dst is None or id(dst.tensor) not in used
    )


def allocation(blocks: Blocks, result: Result, call: cst.Call, counts: str = "") -> str:
    """Return the expression that makes the tile.

    It is valid for all evaluated shapes, or else for the given ones. Raises `NoResult`.
    """
    of_all, sheet = result, blocks.sheet
    for facts in sheet.facts.of_other_shapes:
        with suppress(NoResult):
            variant = result_of(sheet, call, result.row, facts)
            of_all = of_all._replace(
                tensors=(*of_all.tensors, *variant.tensors),
                instructions=(*of_all.instructions, *variant.instructions),
            )
    try:
        return _allocation(blocks, of_all, call, counts)
    except NoResult:
        return _allocation(blocks, result, call, counts)


def _allocation(blocks: Blocks, result: Result, call: cst.Call, counts: str) -> str:
    """Return `nl.ndarray(data.shape, dtype=data.dtype, buffer=nl.sbuf)`.

    `counts` is the shape of what is loaded, if its index tells it.
    """
    sheet, operands = blocks.sheet, _operands(result, call, blocks)
    try:
        shape = _shape(result, operands, counts)
    except NoResult:
        # Each may be copied to a part of its own shape.
        target = only_target(next(sheet.parents(call)))
        parts = sheet.instructions(target) if target is not None else ()
        shapes = [dst.shape for i in parts if (dst := dst_of(i)) is not None]
        is_like = shapes == [tensor.shape for tensor in result.tensors]
        if not is_like or not isinstance(target, cst.Subscript) or blocks.kind(target) is not None:
            raise
        if not all(isinstance(element.slice, cst.Slice) for element in target.slice):
            raise
        shape = f"{code(target)}.shape"
    dtype = _dtype(sheet, result, call, operands)
    buffers = {tensor.buffer for tensor in result.tensors}
    if len(buffers) != 1:
        raise NoResult("it is not always in the same memory")
    buffer = code(sheet.nl(buffers.pop().value))
    return sheet.text("nl.ndarray({}, dtype={}, buffer={})", shape, dtype, buffer)


class Operand(NamedTuple):
    """An operand's expression and its evaluated views.

    The expression is a tensor's name, without `sizes`, or a part of one whose sizes the index
    tells. The name is "" for a part of a list of tiles.
    """

    name: str
    sizes: tuple[str, ...]
    views: tuple[View, ...]

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        return [view.shape if self.sizes else view.tensor.shape for view in self.views]

    def size(self, dim: int) -> str:
        dim %= len(self.shapes[0])
        return self.sizes[dim] if self.sizes else f"{self.name}.shape[{dim}]"


def _operands(result: Result, call: cst.Call, blocks: Blocks) -> dict[str, Operand]:
    operands: dict[str, Operand] = {}
    for operand in result.row.operands:
        argument = find(call, result.row.parameters[1:], operand.name)
        values = [instruction.operand(operand.name) for instruction in result.instructions]
        views = tuple(value for value in values if isinstance(value, View))
        if argument is None or len(views) != len(values):
            continue
        value = argument.value
        base = value.value if isinstance(value, cst.Subscript) else value
        name = base.value if isinstance(base, cst.Name) and blocks.is_tensor(base) else ""
        sizes = tuple(sizes_of(blocks.indices, value, name))
        if tile := blocks.tile(value) or (name if base is value else ""):
            operands[operand.name] = Operand(tile, (), views)
        elif {len(view.shape) for view in views} == {len(sizes)}:
            operands[operand.name] = Operand(name, sizes, views)
    return operands


def _shape(result: Result, operands: Mapping[str, Operand], counts: str) -> str:
    shapes = [tensor.shape for tensor in result.tensors]
    alike = [operand for operand in operands.values() if operand.shapes == shapes]
    for operand in alike:
        if not operand.sizes:
            return f"{operand.name}.shape"
    if counts:
        return counts
    ranks = {len(shape) for shape in shapes}
    if len(ranks) != 1:
        raise NoResult("its shape changes from iteration to iteration")
    sizes = alike[0].sizes if alike else [_size(result, operands, n) for n in range(ranks.pop())]
    return tuple_of(sizes)


def _size(result: Result, operands: Mapping[str, Operand], dim: int) -> str:
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
    if (dtype := keyword_value(call, "dtype")) is not None:
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
    """A call that returns a tile: its old and new form, its result, and what makes the tile."""

    old: cst.Call
    new: cst.Call
    result: Result
    maker: str


class PendingCalls:
    """The calls that no statement has written yet, by placeholder."""

    def __init__(self) -> None:
        self._calls: dict[str, Pending] = {}

    def add(self, call: Pending) -> cst.Name:
        name = f"__pending_{len(self._calls) + 1}"
        self._calls[name] = call
        return cst.Name(name)

    def get(self, node: cst.CSTNode | None) -> Pending | None:
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
            calls = {name.value: self._calls[name.value] for name in placeholders}
            for call in calls.values():
                text = "the result of this is used where no statement can precede it"
                sheet.leave(call.old, text, RETURNING)
            tree = replaced_names(tree, {name: call.new for name, call in calls.items()})
        return tree


class Hoisting:
    def __init__(self, sheet: Sheet, pending: PendingCalls) -> None:
        self.sheet = sheet
        self.pending = pending
        self.lines: list[cst.SimpleStatementLine] = []
        self.names: dict[str, cst.BaseExpression] = {}

    def hoisted(self, statement: cst.SimpleStatementLine, condition: str = "") -> Any:
        """Return the lines that replace the statement; the tiles are made outside its condition."""
        names = [*self.pending.inside(statement)]
        if not names:
            return _under(condition, [], [statement]) if condition else statement
        needed = [self._written(name, statement.body[0]) for name in names]
        if all(needed):
            self.lines.append(replaced_names(statement, self.names).with_changes(leading_lines=()))
        self.lines[0] = self.lines[0].with_changes(leading_lines=statement.leading_lines)
        trailing = statement.trailing_whitespace
        self.lines[-1] = self.lines[-1].with_changes(trailing_whitespace=trailing)
        if condition:
            lines = [line for line in self.lines if _is_allocation(line)]
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
        tile = ""  # the target, if that is a name that the statement sets anew
        if isinstance(target, cst.Name) and isinstance(statement, cst.Assign | cst.AnnAssign):
            tile = "" if _mentions(new, target.value) else target.value
        plain = bool(tile)
        tile = tile or self.sheet.fresh(_tile_name(statement, call))
        maker = call.maker.replace(TARGET, sheet_code(target)) if target is not None else call.maker
        value = cst.parse_expression(maker)
        made: cst.BaseSmallStatement = cst.Assign([cst.AssignTarget(cst.Name(tile))], value)
        if plain and isinstance(statement, cst.AnnAssign):
            made = statement.with_changes(value=value)
        self.lines.append(cst.SimpleStatementLine([made]))
        dst = f"{tile}[{call.result.part}]" if call.result.part else tile
        self.lines.append(_writing(new, cst.parse_expression(dst)))
        self.names[name.value] = cst.Name(tile)
        return not plain

    def _onto_target(
        self, name: str, call: Pending, new: cst.Call, statement: cst.BaseSmallStatement | None
    ) -> bool:
        """Write `t[...] = instruction(...)`, or `+=` in PSUM, with t as dst.

        An assignment overwrites. A matmul whose `accumulate` is left open would add to what an
        earlier one wrote there, or the same one in an earlier iteration or for other shapes.
        """
        target = only_target(statement) if statement is not None else None
        if target is None:
            text = "the target of this is unknown: it is part of an expression"
            self.sheet.leave(call.old, text, RETURNING)
            self.names[name] = new
            return True
        self.sheet.done[RESULTS] += 1
        row = call.result.row
        flag = row.accumulates
        if flag and isinstance(statement, cst.Assign):
            if self.sheet.due(row.attributes[row.attribute_index[flag]].since):
                last = named(flag, cst.Name("False"))
                new = with_args(new, [*new.args, last])
            else:
                text = "this overwrites what was there, and would now add to what a matmul wrote"
                help = "assign it to a tile that nothing else writes, or migrate to NKI 0.3"
                self.sheet.leave(call.old, text, help, sure=False)
        self.lines.append(_writing(new, target))
        return False


def _is_allocation(line: cst.SimpleStatementLine) -> bool:
    match line.body[0]:
        case cst.Assign(value=cst.Call(cst.Attribute(attr=cst.Name("ndarray")))):
            return True
        case cst.AnnAssign(value=cst.Call(cst.Attribute(attr=cst.Name("ndarray")))):
            return True
    return False


def _under(
    condition: str,
    before: Sequence[cst.SimpleStatementLine],
    lines: Sequence[cst.SimpleStatementLine],
) -> Any:
    if not lines:
        return cst.FlattenSentinel(before)
    first, *others = lines
    leading = () if before else first.leading_lines
    inside = first.with_changes(leading_lines=first.leading_lines if before else ())
    test = cst.parse_expression(condition)
    conditional = cst.If(test, cst.IndentedBlock([inside, *others]), leading_lines=leading)
    return cst.FlattenSentinel([*before, conditional])


def replaced_names(node: Any, names: Mapping[str, cst.BaseExpression]) -> Any:
    return node.visit(_Names(names)) if names else node


class _Names(cst.CSTTransformer):
    def __init__(self, names: Mapping[str, cst.BaseExpression]) -> None:
        super().__init__()
        self.names = names

    def on_leave(self, old: Any, new: Any) -> Any:
        return self.names.get(old.value, new) if isinstance(old, cst.Name) else new


def _tile_name(statement: cst.BaseSmallStatement, call: Pending) -> str:
    """Return a name for an unnamed tile, from the statement's target and the tile's memory."""
    target = only_target(statement)
    if isinstance(target, cst.Name) and _mentions(call.new, target.value):
        return f"new_{target.value}"
    while isinstance(target, cst.Subscript):
        target = target.value
    in_psum = any(tensor.buffer is Buffer.PSUM for tensor in call.result.tensors)
    kind = "psum" if in_psum else "tile"
    return f"{target.value}_{kind}" if isinstance(target, cst.Name) else "tile"


def _writing(call: cst.Call, dst: cst.BaseExpression) -> cst.SimpleStatementLine:
    by_name = bool(call.args) and all(keyword_of(arg) for arg in call.args)
    first = named("dst", dst) if by_name else cst.Arg(dst)
    args = [first.with_changes(comma=COMMA), *call.args] if call.args else [first]
    return cst.SimpleStatementLine([cst.Expr(call.with_changes(args=args))])


def _mentions(node: cst.CSTNode, name: str) -> bool:
    return any(inner.value == name for inner in names_in(node))


def joined(statements: Sequence[cst.BaseStatement]) -> list[cst.BaseStatement]:
    """Merge neighbouring statements under the same condition, if the first do not change it."""
    merged: list[cst.BaseStatement] = []
    for statement in statements:
        match (merged[-1:], statement):
            case (
                [cst.If(test, cst.IndentedBlock(body) as block, None) as last],
                cst.If(again, cst.IndentedBlock((first, *others)), None),
            ) if sheet_code(test) == sheet_code(again) and not _is_changed(test, block):
                if isinstance(first, cst.SimpleStatementLine):
                    first = first.with_changes(leading_lines=statement.leading_lines)
                new = block.with_changes(body=[*body, first, *others])
                merged[-1] = last.with_changes(body=new)
            case _:
                merged.append(statement)
    return merged


def _is_changed(test: cst.BaseExpression, body: cst.CSTNode) -> bool:
    names = {node.value for node in names_in(test)}
    return any(set(names_set(node)) & names for node in walk(body))
