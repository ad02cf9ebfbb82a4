"""Statements that the evaluation did not reach, but that declarations determine.

In `t[...] = nisa.affine_select(…, dtype=kind)` with `t = nl.ndarray(…, dtype=kind)`, the result has
the type of `t`, whatever that is: the instruction writes `t[...]` directly.
"""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from nkic.machine.memory import Buffer
from nkic.machine.operands import Row
from nkic.migrate.arguments import keyword_of, keyword_value
from nkic.migrate.beta1.blocks import MAKERS
from nkic.migrate.beta1.indices import Indices, code
from nkic.migrate.beta1.results import Result
from nkic.migrate.sheet import Sheet
from nkic.migrate.tree import names_in


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
