"""Checks that every operand and attribute has a kind its row allows, without looking into tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from nkic.base.text import kind_of
from nkic.machine.operands import (
    MAX_TEXT,
    Attribute,
    AttributeKind,
    Facts,
    Operand,
    Register,
    Row,
    Tile,
    Value,
    Violation,
)
from nkic.machine.operators import ACTIVATIONS, ALU, NO_ENGINE

INT32 = (-(1 << 31), (1 << 31) - 1)
INT64 = (-(1 << 63), (1 << 63) - 1)  # limits of the file format


def wrong_arguments(row: Row, facts: Facts) -> Iterator[Violation]:
    """Yield an error per operand or attribute of a wrong kind; without errors, rules may run."""
    operands, attributes = facts.operands, facts.attributes
    for operand in row.operands:
        value = operands.get(operand.name)
        if not (operand.buffers if type(value) is Tile else _accepted(operand, value)):
            yield _wrong(operand.name, value, accepts(operand), _number_advice(operand, value))
    for name, attribute, accepted in _checks(row):
        setting = attributes.get(name)
        if accepted(setting) or (setting is None and attribute.optional):
            continue
        if attribute.kind in (AttributeKind.ALU, AttributeKind.ACTIVATION) and setting in NO_ENGINE:
            text = f"`{name}` is nl.{setting}, which is not an operator of any engine"
            yield Violation("argument-kind", text, name, NO_ENGINE[setting])
        else:
            yield _wrong(name, setting, takes(attribute), _operator_advice(attribute, setting))


def _wrong(name: str, value: Any, expected: str, advice: str = "") -> Violation:
    text = f"`{name}` is {shown(value)}, but must be {expected}"
    return Violation("argument-kind", text, name, advice or f"pass {expected} as `{name}`")


def _number_advice(operand: Operand, value: Any) -> str:
    """Return advice on a number in place of one of two tiles."""
    if not is_number(value) or operand.name not in ("data1", "data2"):
        return ""
    return f"use `nisa.tensor_scalar`, with the tile as `data` and {value!r} as `operand0`"


def _operator_advice(attribute: Attribute, value: Any) -> str:
    """Return advice on a function of tensors, or an operator of the other kind of instruction."""
    if attribute.kind is AttributeKind.ALU and value in _FOLDS:
        then = "; multiply the sum by 1 / the number of elements" * (value == "mean")
        return f"nl.{value} is a function of a tensor; its operator is nl.{_FOLDS[value]}{then}"
    if attribute.kind is AttributeKind.ACTIVATION and value in _FOLDS:
        call = f"nisa.tensor_reduce(dst=…, op=nl.{_FOLDS[value]}, data=…, axis=1)"
        then = ", and a multiplication by 1 / the number of elements" * (value == "mean")
        return f"nl.{value} is a function of a tensor; the instruction for it is {call}{then}"
    if attribute.kind is AttributeKind.ALU and value in ACTIVATIONS:
        return f"nl.{value} takes one value and goes with nisa.activation; operators take two"
    if attribute.kind is AttributeKind.ACTIVATION and value in ALU:
        usage = "takes two values and goes with nisa.tensor_tensor or nisa.tensor_scalar"
        return f"nl.{value} {usage}; functions take one"
    return ""


# The operators with which functions of tensors reduce them.
_FOLDS = {"sum": "add", "mean": "add", "prod": "multiply", "max": "maximum", "min": "minimum"}


def _accepted(operand: Operand, value: Value) -> bool:
    if value is None:
        return operand.optional
    if type(value) is Register:
        return operand.register
    return operand.number and is_number(value)


def accepts(operand: Operand) -> str:
    """Describe in words the values that `operand` accepts."""
    kinds = (
        "a tile" if operand.buffers else "",
        "a number" if operand.number else "",
        "a register" if operand.register else "",
        "None" if operand.optional else "",
    )
    return " or ".join(filter(None, kinds))


def takes(attribute: Attribute) -> str:
    """Describe in words the values that `attribute` accepts."""
    kind = attribute.kind.value
    description = f"{'an' if kind[0] in 'aio' else 'a'} {kind}"
    if attribute.kind is AttributeKind.CHOICE:
        description = f"one of {', '.join(attribute.choices)}"
    return f"{description} or None" if attribute.optional else description


@cache
def _checks(row: Row) -> tuple[tuple[str, Attribute, Callable[[Any], bool]], ...]:
    return tuple((a.name, a, _acceptor(a)) for a in row.attributes)


def allowed(attribute: Attribute, value: Any) -> bool:
    """Return whether `value` has a kind that `attribute` accepts; its rules may still reject it."""
    return (value is None and attribute.optional) or _acceptor(attribute)(value)


def _acceptor(attribute: Attribute) -> Callable[[Any], bool]:
    if attribute.kind is AttributeKind.CHOICE:
        return lambda value: type(value) is str and value in attribute.choices
    return _ACCEPTORS[attribute.kind]


def is_number(value: Any) -> bool:
    """Return whether `value` is a float (also NaN or infinite) or an int that a file can hold."""
    return type(value) is float or _is_int(value)


def _is_text(value: Any) -> bool:
    if type(value) is not str:
        return False
    try:
        return len(value.encode()) <= MAX_TEXT
    except UnicodeEncodeError:  # a lone surrogate
        return False


def _is_int(value: Any) -> bool:
    return type(value) is int and INT64[0] <= value <= INT64[1]


def _is_int32(value: Any) -> bool:
    return type(value) is int and INT32[0] <= value <= INT32[1]


def _is_ints(value: Any) -> bool:
    return type(value) is tuple and all(map(_is_int, value))


def _is_numbers(value: Any) -> bool:
    return type(value) is tuple and all(is_number(item) and item == item for item in value)


def _is_pattern(value: Any) -> bool:
    return type(value) is tuple and all(
        type(pair) is tuple and len(pair) == 2 and all(map(_is_int32, pair)) for pair in value
    )


def _is_groups(value: Any) -> bool:
    return type(value) is tuple and all(
        type(group) is tuple and all(map(_is_int32, group)) for group in value
    )


_ACCEPTORS: dict[AttributeKind, Callable[[Any], bool]] = {
    AttributeKind.ALU: lambda value: type(value) is str and value in ALU,
    AttributeKind.ACTIVATION: lambda value: type(value) is str and value in ACTIVATIONS,
    AttributeKind.BOOL: lambda value: type(value) is bool,
    AttributeKind.INT: _is_int,
    AttributeKind.INT32: _is_int32,
    AttributeKind.NUMBER: is_number,
    AttributeKind.PATTERN: _is_pattern,
    AttributeKind.INTS: _is_ints,
    AttributeKind.GROUPS: _is_groups,
    AttributeKind.NUMBERS: _is_numbers,
    AttributeKind.TEXT: _is_text,
}


def shown(value: Any) -> str:
    """Return a short form of any value, for messages."""
    if type(value) is Tile:
        return f"a tile {value}"
    if type(value) is Register:
        return "a register"
    if type(value) is int and not _is_int(value):
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, int | float | str | None):
        text = repr(value)
        return text if len(text) <= 40 else f"{text[:40]}…"
    return kind_of(value)
