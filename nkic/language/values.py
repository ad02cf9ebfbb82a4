"""Conversion of attribute values from kernels' objects to the program's form.

Operators and members of enumerations become their names, lists become tuples. `check` validates the
result against the instruction table; this module refuses only values that the table cannot
represent, such as a string in place of an operator, or an arbitrary object.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from nkic.base.diagnostics import Level
from nkic.base.profiles import Profile
from nkic.base.text import kind_of
from nkic.language.creation import is_array
from nkic.language.enums import OF_ATTRIBUTE, OPERATORS, Operator
from nkic.language.foreign import MEANT
from nkic.language.hosted import plain
from nkic.language.objects import ReplicaGroup
from nkic.language.registers import DeviceInteger
from nkic.language.tensor import NkiTensor
from nkic.language.trace import active, complain
from nkic.machine.arguments import takes
from nkic.machine.operands import Attribute, AttributeKind


class CallRefused(Exception):
    """A call of an instruction that cannot be recorded; the message says why.

    `argument` is the name of the offending parameter, if there is one.
    """

    def __init__(self, slug: str, message: str, help: str = "", argument: str = "") -> None:
        super().__init__(message)
        self.slug = slug
        self.message = message
        self.help = help
        self.argument = argument


def attribute_value(attribute: Attribute, value: Any) -> Any:
    """Convert `value` to the program's form. Raises `CallRefused`."""
    if value is None or type(value) is bool:
        return value
    read = _READERS[attribute.kind]
    try:
        return read(attribute, value)
    except CallRefused:
        inside = plain(value)
        if inside is value:
            raise
    return attribute_value(attribute, inside)


def _operator(attribute: Attribute, value: Any) -> str:
    if isinstance(value, Operator):
        return value.name
    name = value if isinstance(value, str) else str(getattr(value, "__name__", ""))
    meant_name = MEANT.get(name, name)
    if meant_name in OPERATORS:
        raise _refusal(attribute, value, f"write nl.{meant_name}")
    example = "exp" if attribute.kind is AttributeKind.ACTIVATION else "add"
    raise _refusal(attribute, value, f"pass the operator itself, uncalled, such as nl.{example}")


def _number(attribute: Attribute, value: Any) -> int | float:
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    raise _refusal(attribute, value)


def _text(attribute: Attribute, value: Any) -> str:
    if isinstance(value, str):
        return str.__str__(value)
    raise _refusal(attribute, value, "pass a string that is known while the kernel is compiled")


def _choice(attribute: Attribute, value: Any) -> Any:
    enumeration = OF_ATTRIBUTE.get(attribute.name)
    if enumeration is None:
        return value if isinstance(value, str | int) else _refuse(attribute, value)
    if isinstance(value, enumeration):
        return value.name
    plain = type(value) in (int, str)
    member = next((m for m in enumeration if plain and m.value == value), None)
    if member is not None:
        return _by_value(attribute, member)
    names = ", ".join(attribute.choices)
    raise _refusal(attribute, value, f"pass a member of nisa.{enumeration.__name__}: {names}")


def _by_value(attribute: Attribute, member: Enum) -> str:
    """Accept a member given by its value, with a warning since 0.3.

    The guide of NKI 0.3 refuses numbers, but published kernels still pass them, and strings for
    matmul_perf_mode, whose values are strings.
    """
    if active().profile >= Profile.NKI_0_3:
        complain(
            "number-for-enum",
            f"`{attribute.name}` is {_described(member.value)}; since NKI 0.3 it is a member of "
            f"nisa.{type(member).__name__}",
            help=f"write nisa.{type(member).__name__}.{member.name}",
            level=Level.WARNING,
            argument=attribute.name,
        )
    return member.name


def _described(value: int | str) -> str:
    return f"the string {value!r}" if isinstance(value, str) else f"the number {value}"


def _ints(attribute: Attribute, value: Any) -> tuple[Any, ...]:
    if isinstance(value, int):
        return (int(value),)
    return _tuple(attribute, value)


def _groups(attribute: Attribute, value: Any) -> tuple[Any, ...]:
    """Convert a `ReplicaGroup`, or its lists of ranks."""
    if isinstance(value, ReplicaGroup):
        value = value.ranks()
    if isinstance(value, tuple | list) and all(isinstance(g, tuple | list) for g in value):
        return _tuple(attribute, value)
    raise _refusal(attribute, value, "pass nki.collectives.ReplicaGroup([[0, 1, …]])")


def _tuple(attribute: Attribute, value: Any) -> tuple[Any, ...]:
    """Convert nested lists and tuples of numbers and strings to tuples."""
    if not isinstance(value, tuple | list):
        raise _refusal(attribute, value)
    return tuple(_tuple_item(attribute, item) for item in value)


def _tuple_item(attribute: Attribute, item: Any) -> Any:
    if isinstance(item, tuple | list):
        return _tuple(attribute, item)
    item = plain(item)
    return item if isinstance(item, int | float | str | None) else _refuse(attribute, item)


def _refuse(attribute: Attribute, value: Any) -> Any:
    raise _refusal(attribute, value)


def _refusal(attribute: Attribute, value: Any, help: str = "") -> CallRefused:
    if isinstance(value, Operator) and not help:
        help = f"this place is `{attribute.name}`'s: pass {shown(value)} by its parameter's name"
    return CallRefused(
        "argument-kind",
        f"`{attribute.name}` is {shown(value)}, but must be {takes(attribute)}",
        help or f"pass {takes(attribute)} as `{attribute.name}`",
        attribute.name,
    )


_READERS: dict[AttributeKind, Callable[[Attribute, Any], Any]] = {
    AttributeKind.ALU: _operator,
    AttributeKind.ACTIVATION: _operator,
    AttributeKind.BOOL: _number,
    AttributeKind.INT: _number,
    AttributeKind.INT32: _number,
    AttributeKind.NUMBER: _number,
    AttributeKind.PATTERN: _tuple,
    AttributeKind.INTS: _ints,
    AttributeKind.NUMBERS: _tuple,
    AttributeKind.GROUPS: _groups,
    AttributeKind.CHOICE: _choice,
    AttributeKind.TEXT: _text,
}


def shown(value: Any) -> str:
    """Describe a value briefly, for a message."""
    if isinstance(value, NkiTensor):
        return f"the tensor {value.name}"
    if isinstance(value, DeviceInteger):
        return "a register"
    if is_array(value):
        return "a NumPy array"
    if isinstance(value, str | int | float | None | Operator | Enum):
        text = repr(value) if not isinstance(value, Enum) else str(value)
        return text if len(text) <= 40 else f"{text[:40]}…"
    return kind_of(value)
