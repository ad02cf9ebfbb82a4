"""The members of an enumeration, and the values of `auto()`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nkic.evaluate import attributes
from nkic.evaluate.library.support import final, library_class, new_instance
from nkic.evaluate.objects import INSTANCES, Builtin, Class, StaticMethod
from nkic.evaluate.operators import BINARY, OPERATIONS, UNARY, unary

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine


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
        """Register a member by its value."""
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
        return tuple([_number(m, part, arguments) for part in value])
    number = _number(m, value, arguments)
    if not _is_auto(value) or "symbol" in value.fields:
        values.append(number)
    return number


def _number(m: Machine, value: Any, arguments: tuple[Any, str, int, list[Any]]) -> Any:
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
    numbers = [m.nested(_number, m, operand, arguments) for operand in parts]
    if len(numbers) == 1:
        return unary(m, symbol, numbers[0])
    return OPERATIONS[symbol](m, *numbers)


def one_more(m: Machine, name: Any, start: Any, count: Any, last_values: Any, /) -> Any:
    """Return one more than the largest value so far."""
    if not last_values:
        return start
    largest = last_values[0]
    for value in last_values[1:]:
        largest = value if m.less(largest, value) else largest
    m.charge(len(last_values))
    return OPERATIONS["+"](m, largest, 1)


def next_value(m: Machine, generate: Any, name: str, start: Any, count: int, values: Any) -> Any:
    """Return the value that `_generate_next_value_` computes for a member."""
    m.elements(len(values), "the list")
    function = generate.function if isinstance(generate, StaticMethod) else generate
    return m.call(function, (name, start, count, list(values)), None)
