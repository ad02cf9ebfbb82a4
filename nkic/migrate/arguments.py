"""Find, add, rename and remove arguments of calls."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from nkic.machine.instructions import ROWS
from nkic.machine.operands import Row

_BY_NAME = cst.AssignEqual(
    whitespace_before=cst.SimpleWhitespace(""), whitespace_after=cst.SimpleWhitespace("")
)
COMMA = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
_MODULES = ("nki.isa", "nki.collectives")


def row_of(name: str) -> Row | None:
    """Return the instruction that a qualified name calls; None for other names."""
    module, _, short = name.rpartition(".")
    row = ROWS.get(short)
    return row if row is not None and module in _MODULES else None


def keyword_of(argument: cst.Arg) -> str:
    """Return the keyword of an argument; "" for a positional one."""
    return argument.keyword.value if argument.keyword is not None else ""


def is_plain(call: cst.Call) -> bool:
    """Whether no argument is unpacked with `*` or `**`, so that number and names are known."""
    return not any(argument.star for argument in call.args)


def keyword(call: cst.Call, name: str) -> cst.Arg | None:
    """Return the keyword argument `name` of a call."""
    return next((argument for argument in call.args if keyword_of(argument) == name), None)


def keyword_value(call: cst.Call, name: str) -> cst.BaseExpression | None:
    """Return the value of the keyword argument `name` of a call."""
    argument = keyword(call, name)
    return argument.value if argument is not None else None


def parameter_of(argument: cst.Arg, position: int, names: Sequence[str]) -> str:
    """Return the parameter of an argument, given those of the function; "" if there is none."""
    return keyword_of(argument) or (names[position] if position < len(names) else "")


def find(call: cst.Call, names: Sequence[str], name: str) -> cst.Arg | None:
    """Return the argument for the parameter `name` of a function whose parameters are `names`."""
    arguments = enumerate(call.args)
    return next(
        (arg for position, arg in arguments if parameter_of(arg, position, names) == name), None
    )


def mask_argument(call: cst.Call) -> cst.BaseExpression | None:
    """Return the mask of a Beta 1 call; None if it is absent or `None`."""
    mask = keyword_value(call, "mask")
    return None if isinstance(mask, cst.Name) and mask.value == "None" else mask


def named(name: str, value: cst.BaseExpression) -> cst.Arg:
    """Return the argument `name=value`."""
    return cst.Arg(value, keyword=cst.Name(name), equal=_BY_NAME)


def with_args(call: cst.Call, args: Sequence[cst.Arg]) -> cst.Call:
    """Return the call with other arguments; the last has a comma only if the old one had."""
    commas = [argument.comma for argument in call.args]
    last = commas[-1] if commas else cst.MaybeSentinel.DEFAULT
    between = next((c for c in commas[:-1] if isinstance(c, cst.Comma)), COMMA)
    separated = [
        a if isinstance(a.comma, cst.Comma) else a.with_changes(comma=between) for a in args[:-1]
    ]
    separated += [args[-1].with_changes(comma=last)] if args else []
    return call.with_changes(args=_closed(call, separated))


def without(call: cst.Call, removed: cst.Arg) -> cst.Call:
    """Return the call without one of its arguments."""
    return with_args(call, [argument for argument in call.args if argument is not removed])


def replaced(call: cst.Call, old: cst.Arg, new: cst.Arg) -> cst.Call:
    """Return the call with one argument replaced."""
    return call.with_changes(args=[new if arg is old else arg for arg in call.args])


def with_value(call: cst.Call, argument: cst.Arg, value: cst.BaseExpression) -> cst.Call:
    """Return the call with another value of one argument."""
    return replaced(call, argument, argument.with_changes(value=value))


def _closed(call: cst.Call, args: list[cst.Arg]) -> list[cst.Arg]:
    """Give the last argument the whitespace between the old last one and the parenthesis."""
    if args and call.args:
        after = call.args[-1].whitespace_after_arg
        args[-1] = args[-1].with_changes(whitespace_after_arg=after)
    return args


def whole_numbers(value: cst.BaseExpression) -> list[int]:
    """Return the integers of a literal list; none for anything else."""
    if not isinstance(value, cst.List | cst.Tuple):
        return []
    values = [element.value for element in value.elements]
    return [int(number.value) for number in values if isinstance(number, cst.Integer)]
