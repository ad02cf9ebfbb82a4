"""Instructions that return tiles: the tile made first, and passed as `dst`.

Shape, element type and memory are those that the evaluation found, written by way of an operand
that has the same each time, where there is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import libcst as cst

from nkic.ir.program import Instruction
from nkic.ir.tensors import Tensor, View
from nkic.language.versions.rewritten import COPIED, SIZES
from nkic.machine.memory import Buffer
from nkic.machine.operands import Row
from nkic.migrate.arguments import find, word
from nkic.migrate.beta1.indices import code
from nkic.migrate.facts import Facts
from nkic.migrate.sheet import Sheet


class NoResult(Exception):
    """What an instruction returns cannot be said; the text says why."""


class Result(NamedTuple):
    """What a call returned, each time that it was evaluated.

    `is_new`: a tile of its own; else the instruction wrote what the statement assigns to. `part`
    are the slices of the tile that a mask left, "" for all of it.
    """

    row: Row
    tensors: tuple[Tensor, ...]
    made: tuple[Instruction, ...]
    is_new: bool
    part: str = ""


def result_of(
    sheet: Sheet, call: cst.Call, row: Row | None, facts: Facts | None = None, only: str = ""
) -> Result:
    """What the evaluation found of a call; `row` is None where any one instruction will do, `only`
    names the one that counts. Raises `NoResult`.
    """
    at = sheet.spot(call)
    facts = facts or sheet.facts
    made = facts.instructions.get(at, ())
    if not made:
        raise NoResult(
            "the evaluation did not come to it"
            if facts.known
            else "the kernel was not evaluated, so that its shape is not known"
        )
    if row is not None:
        made = _without_copies(made, row)
    if only:
        made = tuple(one for one in made if one.row.name == only)
    rows = {one.row.name for one in made}
    if len(rows) != 1 or (row is not None and rows != {row.name}):
        raise NoResult(f"it is made of several instructions: {', '.join(sorted(rows))}")
    views = [one.operand("dst") for one in made]
    tensors = tuple(view.tensor for view in views if isinstance(view, View))
    written = {id(one) for one in tensors}
    own = [one for one in facts.tensors.get(at, ()) if id(one) in written]
    new = {any(tensor is one for one in own) for tensor in tensors}
    if len(new) != 1:
        raise NoResult("it writes a tile of its own in some turns only")
    if new == {True} and len(tensors) != len(own):
        raise NoResult("it is made of several instructions in one turn")
    return Result(made[0].row, tensors, made, new == {True})


def _without_copies(made: Sequence[Instruction], row: Row) -> tuple[Instruction, ...]:
    """Without the copies of operands out of PSUM, which an instruction that does not read it had
    made: they are written beside it.
    """
    if row.name not in COPIED:
        return tuple(made)
    sources = [one.operand(COPIED[row.name]) for one in made if one.row.name == row.name]
    used = {id(one.tensor) for one in sources if isinstance(one, View)}

    def is_copy(one: Instruction) -> bool:
        dst = one.operand("dst")
        return one.row.name not in COPIED and isinstance(dst, View) and id(dst.tensor) in used

    return tuple(one for one in made if not is_copy(one))


def allocation(sheet: Sheet, result: Result, call: cst.Call, counts: str = "") -> str:
    """The expression that makes the tile. One that is right for all shapes that were evaluated,
    or else for the given ones. Raises `NoResult`.
    """
    for one in (_of_all(sheet, result, call), result):
        try:
            return _allocation(sheet, one, call, counts)
        except NoResult as failure:
            last = failure
    raise last


def _of_all(sheet: Sheet, result: Result, call: cst.Call) -> Result:
    for facts in sheet.facts.others:
        try:
            other = result_of(sheet, call, result.row, facts)
        except NoResult:
            continue
        result = result._replace(
            tensors=(*result.tensors, *other.tensors), made=(*result.made, *other.made)
        )
    return result


def _allocation(sheet: Sheet, result: Result, call: cst.Call, counts: str = "") -> str:
    """`nl.ndarray(data.shape, dtype=data.dtype, buffer=nl.sbuf)`; `counts` is the shape of what
    is loaded, if index expressions say it.
    """
    names = _tile_names(result, call)
    shape = _shape(result, names, counts)
    dtype = _dtype(sheet, result, call, names)
    buffers = {tensor.buffer for tensor in result.tensors}
    if len(buffers) != 1:
        raise NoResult("it is not always in the same memory")
    place = code(sheet.of_module("nki.language", _name(buffers.pop())))
    make = code(sheet.of_module("nki.language", "ndarray"))
    return f"{make}({shape}, dtype={dtype}, buffer={place})"


def _name(buffer: Buffer) -> str:
    return buffer.value


Operands = dict[str, tuple[str, Sequence[View]]]
"""By operand: the name that is passed for it, and what that was each time."""


def _tile_names(result: Result, call: cst.Call) -> Operands:
    """The operands that are plain names."""
    found: Operands = {}
    for operand in result.row.operands:
        argument = find(call, result.row.parameters[1:], operand.name)
        if argument is None or not isinstance(argument.value, cst.Name):
            continue
        values = [one.operand(operand.name) for one in result.made]
        views = [value for value in values if isinstance(value, View)]
        if len(views) == len(values):
            found[operand.name] = (argument.value.value, views)
    return found


def _shape(result: Result, names: Operands, counts: str) -> str:
    shapes = [tensor.shape for tensor in result.tensors]
    for name, views in names.values():
        if [view.tensor.shape for view in views] == shapes:
            return f"{name}.shape"
    if counts:
        return counts
    ranks = {len(shape) for shape in shapes}
    if len(ranks) != 1:
        raise NoResult("its shape changes from turn to turn")
    texts = [_size(result, names, dim) for dim in range(ranks.pop())]
    return f"({', '.join(texts)}{',' * (len(texts) == 1)})"


def _size(result: Result, names: Operands, dim: int) -> str:
    """One dimension, by that of an operand that is the same each time, or as a number."""
    sizes = [tensor.shape[dim] for tensor in result.tensors]
    rank = len(result.tensors[0].shape)
    operand, place = SIZES.get(result.row.name, {}).get(dim, ("", dim))
    for said, (name, views) in names.items():
        shapes = [view.tensor.shape for view in views]
        fits = all(len(shape) > max(place, 0) for shape in shapes)
        is_like = dim == 0 or all(len(shape) == rank for shape in shapes)
        is_it = said == operand if operand else is_like
        if is_it and fits and [shape[place] for shape in shapes] == sizes:
            return f"{name}.shape[{place}]"
    if len(set(sizes)) != 1:
        raise NoResult("its shape changes from turn to turn")
    return str(sizes[0])


def _dtype(sheet: Sheet, result: Result, call: cst.Call, names: Operands) -> str:
    said = next((one for one in call.args if word(one) == "dtype"), None)
    if said is not None:
        return code(said.value)
    dtypes = [tensor.dtype for tensor in result.tensors]
    for name, views in names.values():
        if [view.dtype for view in views] == dtypes:
            return f"{name}.dtype"
    if len(set(dtypes)) != 1:
        raise NoResult("its element type changes from turn to turn")
    return code(sheet.of_module("nki.language", dtypes[0].name))
