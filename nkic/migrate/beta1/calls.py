"""Calls in another form: methods, numbers, masks without effect, and updates of tensors in HBM."""

from __future__ import annotations

import libcst as cst

from nkic.ir.tensors import View
from nkic.language.versions import rewritten
from nkic.machine.dtypes import BOOL
from nkic.machine.memory import Buffer
from nkic.machine.operands import Row
from nkic.migrate.arguments import (
    COMMA,
    find,
    keyword,
    keyword_of,
    mask_argument,
    row_of,
    with_args,
    with_value,
    without,
)
from nkic.migrate.beta1.indices import code
from nkic.migrate.sheet import Sheet

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
    if name not in rewritten.FUNCTIONS or not isinstance(new.func, cst.Attribute):
        return new
    sheet.done[METHODS] += 1
    tile = new.func.value.with_changes(lpar=(), rpar=())
    first = cst.Arg(tile, comma=COMMA)
    function = sheet.nl(name)
    return new.with_changes(func=function, args=[first, *new.args])


def instruction(sheet: Sheet, call: cst.Call) -> Row | None:
    """Return the instruction that the call corresponds to today."""
    module, _, name = sheet.name_of(call.func).rpartition(".")
    return row_of(f"{module}.{rewritten.DYNAMIC.get(name, name)}")


def copied(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call:
    """Rewrite `nisa.tensor_copy_dynamic_src(…)` to `nisa.tensor_copy(…)`; the tile's index carries
    the rest.
    """
    module, _, name = sheet.name_of(old.func).rpartition(".")
    if module != "nki.isa" or name not in rewritten.DYNAMIC:
        return new
    sheet.done[COPIES] += 1
    return new.with_changes(func=sheet.of_module(module, rewritten.DYNAMIC[name]))


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
    called, names, today = rewritten.COMBINED
    if sheet.function(old) != called:
        return new
    dst, value = (find(new, names, name) for name in names[:2])
    op = find(old, names, names[2])
    operator = sheet.name_of(op.value).rpartition(".")[2] if op is not None else ""
    if dst is None or value is None or not operator or len(new.args) != len(names):
        return new
    sheet.done[FOLDS] += 1
    operator = rewritten.OPERATORS.get(operator, operator)
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
