"""Results that Beta 1 rounded once.

`t[...] = nl.divide(x, y)` was one instruction that wrote `t` in the type of `t`. Since then, the
result has the type of the operands and is converted by the assignment: float8 by way of bfloat16 is
rounded twice. `dtype=` sets the type of the result. A number with a fraction made a float32 of
integers, which now stay integers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import libcst as cst

from nkic.ir.program import Instruction
from nkic.ir.tensors import View
from nkic.machine.dtypes import FLOAT32, DType
from nkic.machine.memory import Buffer
from nkic.migrate.arguments import keyword, named, with_args
from nkic.migrate.beta1.wider import BINARY
from nkic.migrate.facts import dst_of
from nkic.migrate.sheet import Sheet

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
