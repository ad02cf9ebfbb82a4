"""`enum`: the classes, and the creation of members from the names in a class body.

The state of an enumeration class is one `Members` in its `extra`. The value of `auto()` is computed
when the class is created, so that it may occur in expressions of the class body.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from nkic.interpret import attributes, classes
from nkic.interpret.compare import hash_key, plain_scalar, stable_hash
from nkic.interpret.library.support import (
    checked_methods,
    final,
    is_instance_of,
    kernel_class,
    library_class,
    new_instance,
    repr_of,
)
from nkic.interpret.objects import (
    INSTANCES,
    UNSET,
    Builtin,
    Class,
    ClassMethod,
    Function,
    Getter,
    Instance,
    Property,
    StaticMethod,
    shared_instance,
)
from nkic.interpret.operators import BINARY, OPERATIONS, UNARY, unary
from nkic.interpret.tables import OBJECT
from nkic.interpret.types.functions import PROPERTY, attribute_name
from nkic.interpret.types.numbers import INT
from nkic.interpret.types.text import STR
from nkic.source import bindings

if TYPE_CHECKING:
    from nkic.interpret.machine import Machine


class Members:
    """The members of one class: all names, the members in order, and the members by value."""

    def __init__(self, cls: Class) -> None:
        self.cls = cls
        self.flag = False
        self.boundary = ""  # the class's treatment of bits without a member, if it specifies one
        self.named: dict[str, Any] = {}
        self.canonical: list[Any] = []
        self.mask = 0  # all bits of a flag
        self.singles = 0  # the bits that have a name of their own
        self._by_value: dict[Any, Any] = {}
        self._others: list[tuple[Any, Any]] = []  # pairs of unhashable value and member

    def find(self, m: Machine, value: Any) -> Any:
        """Return the member with a value, or None."""
        try:
            m.check_key(value, len(self._by_value))
            return self._by_value.get(value)
        except TypeError:
            return next(
                (member for other_value, member in self._others if m.equal(other_value, value)),
                None,
            )

    def keep(self, m: Machine, value: Any, member: Any) -> None:
        try:
            m.check_key(value, len(self._by_value))
            self._by_value.setdefault(value, member)
        except TypeError:
            self._others.append((value, member))


def members_of(cls: Class) -> Members:
    """Return the members of a class; none for `Enum` itself."""
    members = cls.extra.get("enum")
    return members if members is not None else Members(cls)


# ---- auto ---------------------------------------------------------------------------------------

AUTO = final(library_class("auto", "enum"))
MEMBER = final(library_class("member", "enum"))
NONMEMBER = final(library_class("nonmember", "enum"))


def _is_auto(value: Any) -> bool:
    return value.__class__ in INSTANCES and value.cls is AUTO


def _deferred(symbol: str, reflected: bool) -> Any:
    def call(m: Machine, owner: Any, other: Any, /) -> Any:
        parts = (other, owner) if reflected else (owner, other)
        return new_instance(m, AUTO, symbol=symbol, parts=parts)

    return call


for _symbol, (_, _, _name, _) in BINARY.items():
    AUTO.members[f"__{_name}__"] = Builtin(f"auto.{_name}", _deferred(_symbol, False))
    AUTO.members[f"__r{_name}__"] = Builtin(f"auto.r{_name}", _deferred(_symbol, True))
for _symbol, (_, _name) in UNARY.items():
    AUTO.members[_name] = Builtin(
        f"auto.{_name}",
        lambda m, owner, _s=_symbol: new_instance(m, AUTO, symbol=_s, parts=(owner,)),
    )


def unwrapped(value: Any) -> Any:
    """Return the argument of `member(…)` or `nonmember(…)`."""
    if value.__class__ in INSTANCES and value.cls in (MEMBER, NONMEMBER):
        return value.fields.get("value")
    return value


def resolved(m: Machine, value: Any, arguments: tuple[Any, str, int, list[Any]]) -> Any:
    """Return the value of a member, with every `auto()` replaced by its value."""
    values = arguments[-1]
    if value.__class__ is tuple and any(_is_auto(part) for part in value):
        return tuple([_auto_number(m, part, arguments) for part in value])
    number = _auto_number(m, value, arguments)
    if not _is_auto(value) or "symbol" in value.fields:
        values.append(number)
    return number


def _auto_number(m: Machine, value: Any, arguments: tuple[Any, str, int, list[Any]]) -> Any:
    if not _is_auto(value):
        return value
    fields = value.fields
    if "value" in fields:
        return fields["value"]
    if "symbol" in fields:
        number = _computed(m, fields["symbol"], fields["parts"], arguments)
    else:
        generate, name, count, values = arguments
        number = next_value(m, generate, name, 1, count, values)
        values.append(number)
    attributes.write_field(m, value, "value", number)
    return number


def _computed(m: Machine, symbol: str, parts: Any, arguments: Any) -> Any:
    numbers = [m.nested(_auto_number, m, operand, arguments) for operand in parts]
    if len(numbers) == 1:
        return unary(m, symbol, numbers[0])
    return OPERATIONS[symbol](m, *numbers)


def one_more(m: Machine, name: Any, start: Any, count: Any, last_values: Any, /) -> Any:
    """Return one more than the largest value so far."""
    if not last_values:
        return start
    if {*map(type, last_values)} == {int}:
        m.charge(len(last_values) >> 1)
        largest = max(last_values)
    else:
        m.charge(8 * len(last_values))
        largest = last_values[0]
        for value in last_values[1:]:
            largest = value if m.less(largest, value) else largest
    return OPERATIONS["+"](m, largest, 1)


def next_value(m: Machine, generate: Any, name: str, start: Any, count: int, values: Any) -> Any:
    """Return the value that `_generate_next_value_` computes for a member."""
    m.elements(len(values), "the list")
    function = generate.function if isinstance(generate, StaticMethod) else generate
    return m.call(function, (name, start, count, list(values)), None)


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


def _flag_missing(m: Machine, cls: Class, value: Any, /) -> Any:
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
    given, allowed = _bits(value, bits), _bits(state.mask, bits)
    return f"<flag '{cls.name}'> invalid value {value}\n    given {given}\n  allowed {allowed}"


def _bits(value: int, bits: int) -> str:
    """Format a number as `enum.bin` does: its sign, then its bits."""
    if value >= 0:
        return f"0b0 {value:0{bits}b}"
    return f"0b1 {(~value ^ ((1 << bits) - 1)) & ((1 << bits) - 1):0{bits}b}"


def _composite(m: Machine, cls: Class, state: Members, value: int) -> Any:
    member = classes.blank(m, cls, (value,) if cls.payload is not Instance else (), None)
    attributes.write_field(m, member, "_value_", value)
    attributes.write_field(m, member, "_name_", _flag_name(m, cls, state, value))
    return member


def _flag_name(m: Machine, cls: Class, state: Members, value: int) -> str | None:
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


def _flag_contains(m: Machine, owner: Any, other: Any, /) -> bool:
    if not m.class_of(other).is_a(owner.cls):
        kinds = f"'{m.class_of(other).qualname}' and '{owner.cls.qualname}'"
        raise TypeError(f"unsupported operand type(s) for 'in': {kinds}")
    return _number(other) & _number(owner) == _number(other)


def _iter(m: Machine, owner: Any, /) -> Any:
    members, number = members_of(owner.cls).canonical, _number(owner)
    m.charge(len(members) * (2 + (number.bit_length() >> 8)))
    return iter([member for member in members if _number(member) & number])


def _flag_str(m: Machine, owner: Any, /) -> str:
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
    "_missing_": ClassMethod(Builtin("_missing_", _flag_missing)),
    "__init_subclass__": ClassMethod(Builtin("__init_subclass__", set_boundary)),
    "_generate_next_value_": Builtin("_generate_next_value_", _next_bit, static=True),
}
FLAG_METHODS: dict[str, Any] = {
    "__str__": _flag_str,
    "__contains__": _flag_contains,
    "__iter__": _iter,
    "__len__": lambda m, owner: _number(owner).bit_count(),
    "__bool__": lambda m, owner: _number(owner) != 0,
    "__invert__": _invert,
}
for _symbol, _word in (("|", "or"), ("&", "and"), ("^", "xor")):
    for _prefix in ("", "r"):
        FLAG_METHODS[f"__{_prefix}{_word}__"] = _operator(_symbol)


_DESCRIPTORS = (Function, StaticMethod, ClassMethod, Property, Getter, Class)


# ---- members of a class body --------------------------------------------------------------------


def _subclass(
    m: Machine, name: str, bases: tuple[Class, ...], space: dict[str, Any], fields: dict[str, str]
) -> Class:
    """Create a class that inherits from `Enum`, with its members."""
    member_values = {key: value for key, value in space.items() if _is_member(key, value)}
    other_values = {
        key: unwrapped(value) for key, value in space.items() if key not in member_values
    }
    _check_bases(m, name, bases)
    cls = classes.plain(m, name, bases, other_values, fields)
    cls.make = _call
    state = cls.extra["enum"] = Members(cls)
    state.flag = cls.is_a(FLAG)
    _add_payload_hash(cls)
    generate = cls.find("_generate_next_value_")
    values: list[Any] = []
    for count, (key, value) in enumerate(member_values.items()):
        arguments = (generate, key, count, values)
        _add_member(m, state, key, resolved(m, unwrapped(value), arguments))
    if state.flag:
        give_bits(state)
    cls.members["__members__"] = dict(state.named)
    return cls


def _is_member(key: str, value: Any) -> bool:
    kind = value.__class__
    if kind in INSTANCES and value.cls is MEMBER:
        return True
    if bindings.is_special(key) or key.startswith("__") or _is_sunder(key):
        return False
    if kind in INSTANCES:
        return value.cls is not NONMEMBER and value.cls.find("__get__") is UNSET
    return not isinstance(value, _DESCRIPTORS)


def _is_sunder(key: str) -> bool:
    return len(key) > 2 and key[0] == key[-1] == "_" and key[1] != "_" and key[-2] != "_"


def _check_bases(m: Machine, name: str, bases: Iterable[Class]) -> None:
    for base in bases:
        state = base.extra.get("enum")
        if state is not None and state.named:
            kind = "flag" if state.flag else "enum"
            raise TypeError(f"<{kind} '{name}'> cannot extend {_text(base)}")


def _add_payload_hash(cls: Class) -> None:
    """Make members that are numbers or text hash like those."""
    if cls.payload is not Instance and "__hash__" not in cls.members:
        checked_methods(cls, {"__hash__": lambda m, owner: hash_key(m, _base(owner))})


def _base(owner: Any) -> Any:
    """Return the number, text or tuple that a member is."""
    return tuple(owner) if isinstance(owner, tuple) else plain_scalar(owner)


def _add_member(m: Machine, state: Members, name: str, value: Any) -> None:
    """Create a member, or an alias of the member with the same value."""
    if name == "mro":
        raise ValueError("invalid enum member name(s) 'mro'")
    m.allocate(400)
    member = _member(m, state.cls, value)
    value = member.fields["_value_"]
    attributes.write_fields(m, member, _name_=name, _sort_order_=len(state.canonical))
    same = state.find(m, value)
    if same is None:
        same = member
        if not state.flag or (isinstance(value, int) and value & (value - 1) == 0 and value > 0):
            state.canonical.append(member)
    state.named[name] = same
    state.keep(m, value, same)
    state.cls.members[name] = same


def _member(m: Machine, cls: Class, value: Any) -> Any:
    args = value if value.__class__ is tuple else (value,)
    if cls.payload is tuple:
        args = (args,)
    new, mixed = cls.find("__new__"), _data_class(cls)
    if cls.is_a(STR_ENUM):
        if len(args) > 3:
            raise TypeError(f"too many arguments for str(): {m.repr(args)}")
        if not isinstance(args[0], str):
            raise TypeError(f"{m.repr(args[0])} is not a string")
    if new is not UNSET:
        member = m.call(getattr(new, "function", new), (cls, *args), None)
    else:
        member = classes.blank(m, cls, args if cls.payload is not Instance else (), None)
    if "_value_" not in member.fields:
        attributes.write_field(m, member, "_value_", _value(m, cls, mixed, member, args, value))
    init = cls.find("__init__")
    if init is not UNSET:
        m.call(init, (member, *args), None)
    return member


def _value(m: Machine, cls: Class, mixed: Any, member: Any, args: Any, value: Any) -> Any:
    if cls.payload is not Instance:
        return _base(member)
    return value if mixed is None else m.call(mixed, args, None)


def _data_class(cls: Class) -> Class | None:
    """Return the dataclass of the kernel that is mixed into an enumeration, if any."""
    for ancestor in cls.mro[1:]:
        if "dataclass" in ancestor.extra and not ancestor.is_a(ENUM):
            return ancestor
    return None


# ---- calling the class --------------------------------------------------------------------------


def _call(m: Machine, cls: Class, /, *args: Any, **named: Any) -> Any:
    """Look up `Mode(value)`; for a class without members, create `Enum("Mode", "SLOW FAST")`."""
    state = cls.extra.get("enum")
    if len(args) > 1 or "names" in named:
        if state is not None and state.named:
            return _looked_up(m, cls, state, args)
        return _functional(m, cls, *args, **named)
    if not args or named or state is None:
        if "value" in named and not args and len(named) == 1:
            return _looked_up(m, cls, members_of(cls), (named["value"],))
        raise TypeError("EnumType.__call__() missing 1 required positional argument: 'value'")
    return _looked_up(m, cls, state, args)


def _looked_up(m: Machine, cls: Class, state: Members, args: tuple[Any, ...]) -> Any:
    value = args[0] if len(args) == 1 else args
    if m.class_of(value) is cls:
        return value
    member = state.find(m, value)
    if member is not None:
        return member
    member = m.call(m.attribute(cls, "_missing_"), (value,), None)
    if member is None:
        raise ValueError(f"{m.repr(value)} is not a valid {cls.qualname}")
    if m.class_of(member).is_a(cls) or isinstance(member, int):
        return member
    text = f"returned {m.repr(member)} instead of None or a valid member"
    raise TypeError(f"error in {cls.name}._missing_: {text}")


def _functional(
    m: Machine, cls: Class, value: Any, names: Any, *, start: Any = 1, **named: Any
) -> Class:
    """Create an enumeration from `Enum("Mode", "SLOW FAST")`."""
    if not isinstance(value, str) or set(named) - {"module", "qualname"}:
        raise TypeError("the name of an enumeration must be a string")
    if isinstance(names, str):
        m.elements(2 * len(names), "the enumeration")
        names = names.replace(",", " ").split()
    entries = m.to_list(names.items() if isinstance(names, dict) else names)
    m.elements(len(entries), "the enumeration")
    space: dict[str, Any] = {}
    values: list[Any] = []
    for number, entry in enumerate(entries):
        if isinstance(entry, str):
            generate = cls.find("_generate_next_value_")
            generated = next_value(m, generate, str.__str__(entry), start, number, values)
            values.append(generated)
            entry = (entry, generated)
        name, member_value = m.unpack(entry, 2)
        space[attribute_name(m, name)] = member_value
    return _subclass(m, str.__str__(value), (cls,), space, {})


# ---- operations on the class --------------------------------------------------------------------


def _item(m: Machine, cls: Class, key: Any) -> Any:
    m.check_key(key, 0)
    return members_of(cls).named[key]


def _contains(m: Machine, cls: Class, value: Any) -> bool:
    """Whether a value is a member or, as since Python 3.12, the value of a member."""
    return m.class_of(value).is_a(cls) or members_of(cls).find(m, value) is not None


def _text(cls: Class) -> str:
    kind = "flag" if cls.is_a(FLAG) else "enum"
    return f"<{kind} '{cls.name}'>"


def _check_put(m: Machine, cls: Class, name: str) -> None:
    state = cls.extra.get("enum")
    if state is not None and name in state.named:
        raise AttributeError(f"cannot reassign member '{name}'")


_HOOKS: dict[str, Any] = {
    "subclass": _subclass,
    "iterate": lambda m, cls: iter(members_of(cls).canonical[:]),
    "reversed": lambda m, cls: iter(members_of(cls).canonical[::-1]),
    "item": _item,
    "length": lambda m, cls: len(members_of(cls).canonical),
    "contains": _contains,
    "shown": lambda m, cls: _text(cls),
    "check_put": _check_put,
    "inheritable": True,
}


# ---- the classes --------------------------------------------------------------------------------


def _enumeration(name: str, *bases: Class, payload: type | None = None) -> Class:
    cls = Class(name, bases, {}, payload=payload, make=_call, module="enum")
    cls.extra |= _HOOKS
    return cls


ENUM = _enumeration("Enum", OBJECT, payload=Instance)
REPR_ENUM = _enumeration("ReprEnum", ENUM)
FLAG = _enumeration("Flag", ENUM)
INT_ENUM = _enumeration("IntEnum", INT, REPR_ENUM, payload=int)
STR_ENUM = _enumeration("StrEnum", STR, REPR_ENUM, payload=str)
INT_FLAG = _enumeration("IntFlag", INT, REPR_ENUM, FLAG, payload=int)


def _str(m: Machine, owner: Any, /) -> str:
    return f"{owner.cls.name}.{m.str(owner.fields.get('_name_'))}"


def _format(m: Machine, owner: Any, spec: Any, /) -> str:
    return m.format(m.str(owner), spec)


@repr_of(ENUM)
def _show(m: Machine, owner: Any, writer: Any) -> None:
    name = owner.fields.get("_name_")
    writer.add(f"<{owner.cls.name}{'' if name is None else f'.{m.str(name)}'}: ")
    writer.value(owner.fields.get("_value_"))
    writer.add(">")


def _hash(m: Machine, owner: Any, /) -> int:
    return stable_hash(m, owner.fields.get("_name_"))


ENUM.members |= {
    "name": Getter("name", lambda m, owner: owner.fields.get("_name_")),
    "value": Getter("value", lambda m, owner: owner.fields.get("_value_")),
    "_missing_": ClassMethod(Builtin("_missing_", lambda m, cls, value, /: None)),
    "_generate_next_value_": Builtin("_generate_next_value_", one_more, static=True),
}
checked_methods(ENUM, {"__str__": _str, "__format__": _format, "__hash__": _hash})
_DATA_TEXTS: dict[str, Any] = {
    "__str__": lambda m, owner, /: m.str(_base(owner)),
    "__format__": lambda m, owner, spec, /: m.format(_base(owner), spec),
}
for _cls in (INT_ENUM, STR_ENUM, INT_FLAG):
    checked_methods(_cls, _DATA_TEXTS)
    _add_payload_hash(_cls)
STR_ENUM.members["_generate_next_value_"] = Builtin(
    "_generate_next_value_", lambda m, name, start, count, values: m.str(name).lower(), static=True
)
FLAG.members |= FLAG_HOOKS
checked_methods(FLAG, FLAG_METHODS)
INT_FLAG.members["@keep"] = True  # values without a name are kept


# ---- the functions ------------------------------------------------------------------------------


def _unique(m: Machine, enumeration: Any, /) -> Any:
    cls = kernel_class(m, enumeration, "unique")
    state = members_of(cls)
    pairs = [(n, v.fields.get("_name_")) for n, v in state.named.items()]
    again = ", ".join(f"{name} -> {first}" for name, first in pairs if name != first)
    if again:
        raise ValueError(f"duplicate values found in {_text(cls)}: {again}")
    return cls


def _wrapper(cls: Class) -> Builtin:
    def call(m: Machine, value: Any, /) -> Any:
        return new_instance(m, cls, value=value)

    return Builtin(cls.name, call)


MODULE: dict[str, Any] = {
    "Enum": ENUM,
    "ReprEnum": REPR_ENUM,
    "Flag": FLAG,
    "IntEnum": INT_ENUM,
    "StrEnum": STR_ENUM,
    "IntFlag": INT_FLAG,
    "EnumMeta": classes.TypingForm("EnumMeta"),
    "EnumType": classes.TypingForm("EnumType"),
    **boundaries(),
    "FlagBoundary": BOUNDARY,
    "property": PROPERTY,
    "auto": Builtin("auto", lambda m, /: new_instance(m, AUTO)),
    "unique": Builtin("unique", _unique),
    "member": _wrapper(MEMBER),
    "nonmember": _wrapper(NONMEMBER),
}
