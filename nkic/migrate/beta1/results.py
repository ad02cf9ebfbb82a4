"""Instructions that return tiles: the tile is made first, and passed as `dst`.

Shape, element type and memory are the evaluated ones, expressed by an operand that has the same in
every evaluation, if there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import libcst as cst

from nkic.ir.program import Instruction
from nkic.ir.tensors import Tensor, View
from nkic.language.versions.rewritten import COPIED, SIZES
from nkic.machine.operands import Row
from nkic.migrate.arguments import find, keyword_value
from nkic.migrate.beta1.indices import code, tuple_of
from nkic.migrate.facts import Facts, dst_of
from nkic.migrate.sheet import Sheet


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
