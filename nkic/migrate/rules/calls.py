"""Arguments whose position, type or value changed.

Source: migration guide, 0.2.0 to 0.3.0, API breaking changes.
"""

from __future__ import annotations

import libcst as cst

from nkic.base.profiles import Profile
from nkic.ir.tensors import View
from nkic.language.enums import OF_ATTRIBUTE, OPERATORS
from nkic.language.versions import rewritten
from nkic.language.versions.rewritten import ORDER_SINCE, Moved
from nkic.machine.memory import Buffer
from nkic.machine.operands import AttributeKind, Row
from nkic.migrate.arguments import (
    find,
    is_plain,
    keyword,
    keyword_of,
    named,
    parameter_of,
    row_of,
    with_value,
    without,
)
from nkic.migrate.sheet import Sheet
from nkic.migrate.tree import code, walk

_MADE = ("nki.language.ndarray", "nki.language.zeros", "nki.language.ones", "nki.language.full")


def enumerations(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call | None:
    """Rewrite `dge_mode=2` to `dge_mode=nisa.dge_mode.hwdge`."""
    row = row_of(sheet.name_of(old.func))
    if row is None or not is_plain(new):
        return None
    call = new
    for position, argument in enumerate(new.args):
        name = parameter_of(argument, position, row.parameters)
        member = _member(row, name, argument.value)
        if member:
            value, current = sheet.nisa(member), call.args[position]
            call = with_value(call, current, value)
    return call if call is not new else None


def _member(row: Row, name: str, value: cst.BaseExpression) -> str:
    """Return the enumeration member whose value a literal is; "" for everything else."""
    kind = OF_ATTRIBUTE.get(name)
    is_choice = name == "engine" or any(
        attribute.name == name and attribute.kind is AttributeKind.CHOICE
        for attribute in row.attributes
    )
    if kind is None or not is_choice or not isinstance(value, cst.Integer | cst.SimpleString):
        return ""
    member = next((member for member in kind if member.value == value.evaluated_value), None)
    return f"{kind.__name__}.{member.name}" if member is not None else ""


def buffer_names(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call | None:
    """Rewrite `buffer="sbuf"` to `buffer=nl.sbuf`."""
    if sheet.name_of(old.func) not in _MADE:
        return None
    argument = keyword(new, "buffer")
    if argument is None or not isinstance(argument.value, cst.SimpleString):
        return None
    name = argument.value.evaluated_value
    if name not in {buffer.value for buffer in Buffer}:
        return None
    return with_value(new, argument, sheet.nl(str(name)))


def shared_outputs(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call | None:
    """Rewrite `buffer=nl.hbm` to `buffer=nl.shared_hbm` for what the kernel returns."""
    if sheet.spot(old) not in sheet.facts.outputs:
        return None
    argument = keyword(new, "buffer")
    if argument is None or not isinstance(argument.value, cst.Attribute | cst.SimpleString):
        return None
    if code(argument.value).strip("'\"").rpartition(".")[2] != "hbm":
        return None
    return with_value(new, argument, sheet.nl("shared_hbm"))


def whole_fill(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call | None:
    """Rewrite `memset(dst, 2.0)` to `memset(dst, 2)` if dst holds integers."""
    row = row_of(sheet.name_of(old.func))
    if row is None or row.name not in rewritten.WHOLE:
        return None
    argument = find(new, row.parameters, rewritten.WHOLE[row.name])
    views = _views(sheet, old, "dst")
    if argument is None or not views or not all(view.dtype.is_integer for view in views):
        return None
    number = _literal(argument.value)
    is_whole = any(isinstance(node, cst.Integer) for node in walk(argument.value))
    if number is None or not number.is_integer() or is_whole:
        return None
    return with_value(new, argument, cst.parse_expression(f"{number:.0f}"))


def reduced_axis(sheet: Sheet, old: cst.Call, new: cst.Call) -> None:
    """Warn that `axis=1` of `tensor_reduce` in 0.2 may mean the last of several dimensions."""
    row = row_of(sheet.name_of(old.func))
    if row is None or row.name not in rewritten.LAST_AXIS or not sheet.is_before(ORDER_SINCE):
        return
    if any(len(view.shape) > 2 for view in _views(sheet, old, rewritten.LAST_AXIS[row.name])):
        text = "NKI 0.2 took axis=1 of a tile with more than two dimensions for its last dimension"
        sheet.leave(old, text, "write the intended axis; NKI 0.3 takes it literally", sure=False)


def _views(sheet: Sheet, call: cst.Call, operand: str) -> list[View]:
    """Return the evaluated views of the operand."""
    instructions = sheet.instructions(call)
    values = (instruction.operand(operand) for instruction in instructions)
    return [value for value in values if isinstance(value, View)]


def former_order(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call | None:
    """Rewrite calls with the former order of parameters.

    `affine_select(dst, pattern, offset, step, a, b)` → `affine_select(dst, pattern, step, a, b,
    offset=offset)`; `dma_compute(dst, srcs, scales, op)` → `dma_compute(dst, srcs, op, scales)`.
    """
    row = row_of(sheet.name_of(old.func))
    moved = rewritten.ORDER.get(row.name) if row is not None else None
    if moved is None or not is_plain(new):
        return None
    placed = sum(1 for arg in new.args if not keyword_of(arg))
    keywords = {keyword_of(arg) for arg in new.args}
    if placed <= moved.place or moved.name in keywords or not _is_former(sheet, old, moved, placed):
        return None
    args = [arg for position, arg in enumerate(new.args) if position != moved.place]
    if moved.swap is None or moved.swap >= placed:
        return _reordered(new, [*args, named(moved.name, new.args[moved.place].value)])
    args.insert(moved.swap, new.args[moved.place])
    return _reordered(new, args)


def _is_former(sheet: Sheet, old: cst.Call, moved: Moved, placed: int) -> bool:
    """Whether the call is written in the order of the former version."""
    if placed <= moved.shown or moved.shown == moved.place:
        by_name = keyword(old, moved.named) is not None
        if by_name or placed <= moved.shown:
            return by_name
    shown = old.args[moved.shown].value
    if sheet.name_of(shown).startswith("nki.language."):
        return False
    certain = isinstance(shown, cst.List | cst.Tuple) or _literal(shown) is not None
    return certain or sheet.is_before(ORDER_SINCE)


def _reordered(call: cst.Call, args: list[cst.Arg]) -> cst.Call:
    """Return the arguments in another order; commas and layout keep their positions."""
    shapes = [(arg.comma, arg.whitespace_after_arg) for arg in call.args]
    reordered = [
        argument.with_changes(comma=comma, whitespace_after_arg=after)
        for argument, (comma, after) in zip(args, shapes, strict=True)
    ]
    return call.with_changes(args=reordered)


def _literal(value: cst.BaseExpression) -> float | None:
    """Return the value of a numeric literal, signed or not."""
    if isinstance(value, cst.UnaryOperation) and isinstance(value.operator, cst.Minus):
        inner = _literal(value.expression)
        return None if inner is None else -inner
    return float(value.evaluated_value) if isinstance(value, cst.Float | cst.Integer) else None


def operators(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call | None:
    """Rewrite `op=nl.max`, `op=np.add` to `op=nl.maximum`, `op=nl.add`."""
    row = row_of(sheet.name_of(old.func))
    if row is None:
        return None
    call = new
    for position, argument in enumerate(old.args):
        module, _, name = sheet.name_of(argument.value).rpartition(".")
        today = rewritten.OPERATORS.get(name, name)
        foreign = module == "numpy" or (module == "nki.language" and today != name)
        if foreign and today in OPERATORS and position < len(call.args):
            value = sheet.nl(today)
            current = call.args[position]
            call = with_value(call, current, value)
    return call if call is not new else None


def converted(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call | None:
    """Rewrite `nl.shared_constant(array, dtype=d)` to `nl.shared_constant(array.astype(d))`."""
    parameter = rewritten.CONVERTED.get(sheet.function(old))
    dtype = keyword(new, parameter) if parameter is not None else None
    if dtype is None or keyword_of(new.args[0]):
        return None
    first = new.args[0]
    simple = isinstance(first.value, cst.Name | cst.Call | cst.Attribute) or first.value.lpar
    array = code(first.value) if simple else f"({code(first.value)})"
    value = cst.parse_expression(f"{array}.astype({code(dtype.value)})")
    return without(with_value(new, first, value), dtype)


def words(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call | None:
    """Rewrite `perf_mode="double_row_gen3"` to `perf_mode="double_row"`."""
    row = row_of(sheet.name_of(old.func))
    if row is None:
        return None
    for argument in new.args:
        literal = argument.value
        if not isinstance(literal, cst.SimpleString):
            continue
        replacements = rewritten.WORDS.get((row.name, keyword_of(argument)), {})
        today = replacements.get(str(literal.evaluated_value))
        if today is not None:
            value = literal.with_changes(value=f"{literal.quote}{today}{literal.quote}")
            return with_value(new, argument, value)
    return None


def defaults(sheet: Sheet, old: cst.Call, new: cst.Call) -> cst.Call | None:
    """Rewrite `nl.rand(shape)` to `nl.rand(shape, dtype=nl.float32)`, the former default."""
    default = rewritten.DEFAULTS.get(sheet.function(old))
    if default is None or not sheet.is_before(Profile.BETA2) or len(new.args) != 1:
        return None
    value = sheet.nl(default[1])
    return new.with_changes(args=[*new.args, named(default[0], value)])
