"""`enum.Flag`: members that are sets of bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nkic.evaluate import attributes, classes
from nkic.evaluate.library.members import Members, members_of
from nkic.evaluate.library.support import final, is_instance_of, library_class, repr_of
from nkic.evaluate.objects import (
    INSTANCES,
    Builtin,
    Class,
    ClassMethod,
    Instance,
    shared_instance,
)
from nkic.evaluate.operators import OPERATIONS

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine


def give_bits(state: Members) -> None:
    """Compute the bits of a flag's members after all members exist."""
    for member in state.named.values():
        value = member.fields.get("_value_")
        if isinstance(value, int):
            state.mask |= value
    for member in state.canonical:
        state.singles |= member.fields["_value_"]


def _number(member: Any) -> int:
    value = member.fields.get("_value_")
    return int(value) if isinstance(value, int) else 0


# The treatment of bits that no member has.
BOUNDARIES = ("strict", "conform", "eject", "keep")
BOUNDARY = final(library_class("FlagBoundary", "enum"))


@repr_of(BOUNDARY)
def _show_boundary(m: Machine, owner: Any, writer: Any) -> None:
    writer.add(f"<FlagBoundary.{owner.fields['_name_']}: {m.repr(owner.fields['_value_'])}>")


def boundaries() -> dict[str, Any]:
    """Return `enum.STRICT` and the other boundaries."""
    return {
        word.upper(): shared_instance(BOUNDARY, _name_=word.upper(), _value_=word)
        for word in BOUNDARIES
    }


def set_boundary(m: Machine, cls: Class, /, *, boundary: Any = None) -> None:
    """Execute `class Perm(Flag, boundary=KEEP)`."""
    if boundary is None:
        return
    if not is_instance_of(boundary, BOUNDARY):
        raise TypeError("the boundary of a flag must be STRICT, CONFORM, EJECT or KEEP")
    members_of(cls).boundary = boundary.fields["_value_"]


def _boundary(cls: Class) -> str:
    return next((s.boundary for c in cls.mro if (s := c.extra.get("enum")) and s.boundary), "")


def _keeps(cls: Class) -> bool:
    return (_boundary(cls) or ("keep" if cls.find("@keep") is True else "")) == "keep"


def _all_bits(state: Members) -> int:
    return (1 << state.mask.bit_length()) - 1


# ---- values without their own member ------------------------------------------------------------


def _missing(m: Machine, cls: Class, value: Any, /) -> Any:
    """Return the pseudo-member for several bits, or for no bit."""
    if not isinstance(value, int):
        raise ValueError(f"{m.repr(value)} is not a valid {cls.qualname}")
    state, value = members_of(cls), int(value)
    outside = value & ~_all_bits(state) if value >= 0 else 0
    if (outside or value & (_all_bits(state) ^ state.mask)) and _boundary(cls) == "eject":
        return value
    number = _in_range(m, cls, state, value)
    m.charge(1 + len(state.named))
    member = state.find(m, number)
    if member is None:
        member = _composite(m, cls, state, number)
        state.keep(m, number, member)
    if value < 0:
        state.keep(m, value, member)
    return member


def _in_range(m: Machine, cls: Class, state: Members, value: int) -> int:
    """Return the value as a sum of bits; a negative value is the complement of its bits."""
    every = _all_bits(state)
    inside = ~every <= value <= every and not value & (every ^ state.mask)
    if not inside:
        if _boundary(cls) == "conform":
            return value & state.mask
        if not _keeps(cls):
            raise ValueError(_invalid(cls, state, value))
        if value < 0:
            bits = max(every + 1, 1 << value.bit_length())
            m.allow_bits(bits.bit_length())
            value += bits
    return every + 1 + value if value < 0 else value


def _invalid(cls: Class, state: Members, value: int) -> str:
    bits = max(value.bit_length(), state.mask.bit_length())
    given_bits, allowed = _bits(value, bits), _bits(state.mask, bits)
    name = f"<flag '{cls.name}'>"
    return f"{name} invalid value {value}\n    given {given_bits}\n  allowed {allowed}"


def _bits(value: int, bits: int) -> str:
    """Format a number as `enum.bin` does: its sign, then its bits."""
    if value >= 0:
        return f"0b0 {value:0{bits}b}"
    return f"0b1 {(~value ^ ((1 << bits) - 1)) & ((1 << bits) - 1):0{bits}b}"


def _composite(m: Machine, cls: Class, state: Members, value: int) -> Any:
    member = classes.blank(m, cls, (value,) if cls.payload is not Instance else (), None)
    attributes.write_field(m, member, "_value_", value)
    attributes.write_field(m, member, "_name_", _name(m, cls, state, value))
    return member


def _name(m: Machine, cls: Class, state: Members, value: int) -> str | None:
    members = [*state.canonical, *state.named.values()]
    m.charge(len(members) * (4 + (3 * value.bit_length() >> 8)))
    parts = {id(member): member for member in state.canonical if _number(member) & value}
    if value & ~state.singles:
        for member in state.named.values():
            number = _number(member)
            if number and number & value == number:
                parts[id(member)] = member
    covered = 0
    for member in parts.values():
        covered |= _number(member)
    names = [m.str(member.fields.get("_name_")) for member in parts.values()]
    m.text(sum(map(len, names)) + len(names), "the name")
    text = "|".join(names)
    unknown = value ^ covered
    if not covered:
        return None
    if unknown and not _keeps(cls):
        raise ValueError(f"<flag '{cls.name}'>: no members with value {unknown}")
    return f"{text}|{unknown}" if unknown else text


# ---- operators ----------------------------------------------------------------------------------


def _operator(symbol: str) -> Any:
    def call(m: Machine, owner: Any, other: Any, /) -> Any:
        if other.__class__ in INSTANCES and other.cls.is_a(owner.cls):
            number: Any = _number(other)
        elif owner.cls.payload is int and isinstance(other, int):
            number = int(other)
        else:
            return NotImplemented
        return m.call(owner.cls, (OPERATIONS[symbol](m, _number(owner), number),), None)

    return call


def _invert(m: Machine, owner: Any, /) -> Any:
    state = members_of(owner.cls)
    value = ~_number(owner)
    return m.call(owner.cls, (value if _keeps(owner.cls) else state.singles & value,), None)


def _contains(m: Machine, owner: Any, other: Any, /) -> bool:
    if not m.class_of(other).is_a(owner.cls):
        kinds = f"'{m.class_of(other).qualname}' and '{owner.cls.qualname}'"
        raise TypeError(f"unsupported operand type(s) for 'in': {kinds}")
    return _number(other) & _number(owner) == _number(other)


def _iter(m: Machine, owner: Any, /) -> Any:
    members, number = members_of(owner.cls).canonical, _number(owner)
    m.charge(len(members) * (2 + (number.bit_length() >> 8)))
    return iter([member for member in members if _number(member) & number])


def _str(m: Machine, owner: Any, /) -> str:
    name = owner.fields.get("_name_")
    cls = owner.cls.name
    return f"{cls}({_number(owner)})" if name is None else f"{cls}.{m.str(name)}"


def _next_bit(m: Machine, name: Any, start: Any, count: Any, last_values: Any, /) -> Any:
    """Return the bit above the highest one so far."""
    if not last_values:
        return start if start is not None else 1
    m.charge(len(last_values))
    numbers = [value for value in last_values if isinstance(value, int)]
    if len(numbers) < len(last_values):
        raise TypeError(f"invalid flag value {m.repr(last_values[-1])}")
    bits = max(numbers).bit_length()
    m.allow_bits(bits)
    return 1 << bits


FLAG_HOOKS: dict[str, Any] = {
    "_missing_": ClassMethod(Builtin("_missing_", _missing)),
    "__init_subclass__": ClassMethod(Builtin("__init_subclass__", set_boundary)),
    "_generate_next_value_": Builtin("_generate_next_value_", _next_bit, static=True),
}
FLAG_METHODS: dict[str, Any] = {
    "__str__": _str,
    "__contains__": _contains,
    "__iter__": _iter,
    "__len__": lambda m, owner: _number(owner).bit_count(),
    "__bool__": lambda m, owner: _number(owner) != 0,
    "__invert__": _invert,
}
for _symbol, _word in (("|", "or"), ("&", "and"), ("^", "xor")):
    for _prefix in ("", "r"):
        FLAG_METHODS[f"__{_prefix}{_word}__"] = _operator(_symbol)
