"""Python's operators, with the size of every result checked before it is computed."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from nkic.interpret.containers import DICT_ITEMS, DICT_KEYS, KernelFrozenSet, KernelSet
from nkic.interpret.objects import INSTANCES, UNSET, Builtin, Class
from nkic.interpret.texts import WRITERS, Writer, percent

if TYPE_CHECKING:
    from nkic.interpret.machine import Machine

SMALL = 1 << 62  # smaller integers need no check of the limits
NUMBERS: frozenset[Any] = frozenset({int, float, bool})
SEQUENCES = (str, list, tuple, bytes)
JOINED: Any = (set, frozenset, KernelSet, KernelFrozenSet, dict, DICT_KEYS, DICT_ITEMS)

Operation = Callable[["Machine", Any, Any], Any]


class Union:
    """A union such as `int | str`: alternatives for `isinstance`."""

    __slots__ = ("parts",)

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self.parts = parts

    def __repr__(self) -> str:
        return f"a union of {len(self.parts)}"


def union(m: Machine, alternatives: Iterable[Any]) -> Any:
    """Return the union of the alternatives, each of them once, or the only one."""
    unique: dict[int, Any] = {}
    for alternative in alternatives:
        parts = alternative.parts if isinstance(alternative, Union) else (alternative,)
        m.elements(4 * len(parts), "the union")
        unique |= {id(part): part for part in parts}
    return next(iter(unique.values())) if len(unique) == 1 else Union(tuple(unique.values()))


def _show_union(writer: Writer, value: Union) -> None:
    for number, part in enumerate(value.parts):
        writer.add(" | " if number else "")
        writer.add("None" if part is None else str(getattr(part, "name", "?")))


WRITERS[Union] = _show_union


# ---- arithmetic ---------------------------------------------------------------------------------


def add(m: Machine, left: Any, right: Any) -> Any:
    if left.__class__ in NUMBERS and right.__class__ in NUMBERS:
        return _checked(m, left + right)
    return _dispatch(m, "+", left, right)


def subtract(m: Machine, left: Any, right: Any) -> Any:
    if left.__class__ in NUMBERS and right.__class__ in NUMBERS:
        return _checked(m, left - right)
    return _dispatch(m, "-", left, right)


def multiply(m: Machine, left: Any, right: Any) -> Any:
    if left.__class__ in NUMBERS and right.__class__ in NUMBERS:
        if left.__class__ is int and right.__class__ is int:
            _check_factors(m, left, right)
        return left * right
    return _dispatch(m, "*", left, right)


def _checked(m: Machine, result: Any) -> Any:
    if result.__class__ is int and not -SMALL < result < SMALL:
        m.allow_bits(result.bit_length())
    return result


def _check_factors(m: Machine, left: int, right: int) -> None:
    bits = left.bit_length() + right.bit_length()
    if bits > 62:
        m.allow_bits(bits - 1)


def _check_power(m: Machine, left: Any, right: Any) -> None:
    if isinstance(left, int) and isinstance(right, int) and right > 0:
        m.allow_bits(max(left.bit_length() - 1, 0) * right)


def _check_shift(m: Machine, left: Any, right: Any) -> None:
    if isinstance(left, int) and isinstance(right, int) and right > 0:
        m.allow_bits(left.bit_length() + right if left else 0)


def _check_sum(m: Machine, left: Any, right: Any) -> None:
    if isinstance(left, SEQUENCES) and isinstance(right, SEQUENCES):
        m.elements(len(left) + len(right), f"the {_type_name(left)}")


def _check_product(m: Machine, left: Any, right: Any) -> None:
    sequence, times = (left, right) if isinstance(left, SEQUENCES) else (right, left)
    if isinstance(sequence, SEQUENCES) and (isinstance(times, int) or times.__class__ in INSTANCES):
        m.elements(len(sequence) * max(m.index(times), 0), f"the {_type_name(sequence)}")
    elif isinstance(left, int) and isinstance(right, int):
        _check_factors(m, left, right)


def _check_union(m: Machine, left: Any, right: Any) -> None:
    for operand in (left, right):
        if isinstance(operand, JOINED):
            m.elements(len(operand), "the set")


def _charge_division(m: Machine, left: Any, right: Any) -> None:
    if isinstance(left, int) and isinstance(right, int):
        m.charge((left.bit_length() >> 6) * (right.bit_length() >> 6) >> 5)


def _no_check(m: Machine, left: Any, right: Any) -> None:
    return None


def _type_name(value: Any) -> str:
    return type(value).__name__ if type(value) in SEQUENCES else value.cls.name


# By symbol: Python's function, the in-place function, the method's name, the size check.
BINARY: dict[str, tuple[Any, Any, str, Operation]] = {
    "+": (operator.add, operator.iadd, "add", _check_sum),
    "-": (operator.sub, operator.isub, "sub", _check_union),
    "*": (operator.mul, operator.imul, "mul", _check_product),
    "/": (operator.truediv, operator.itruediv, "truediv", _charge_division),
    "//": (operator.floordiv, operator.ifloordiv, "floordiv", _charge_division),
    "%": (operator.mod, operator.imod, "mod", _charge_division),
    "**": (operator.pow, operator.ipow, "pow", _check_power),
    "<<": (operator.lshift, operator.ilshift, "lshift", _check_shift),
    ">>": (operator.rshift, operator.irshift, "rshift", _no_check),
    "&": (operator.and_, operator.iand, "and", _check_union),
    "|": (operator.or_, operator.ior, "or", _check_union),
    "^": (operator.xor, operator.ixor, "xor", _check_union),
    "@": (operator.matmul, operator.imatmul, "matmul", _no_check),
}


def _dispatch(m: Machine, symbol: str, left: Any, right: Any) -> Any:
    """Apply the operator to values that are not both plain numbers."""
    function, _, name, guard = BINARY[symbol]
    if left.__class__ in INSTANCES or right.__class__ in INSTANCES:
        special = _by_methods(m, left, right, f"__{name}__", f"__r{name}__")
        if special is not NotImplemented:
            return special
        left, right = _plain_operands(m, symbol, left, right)
    if symbol == "%" and isinstance(left, str | bytes):
        return percent(m, left, right)
    if symbol == "|" and _is_type(left) and _is_type(right):
        return union(m, (left, right))
    guard(m, left, right)
    if left.__class__ in JOINED or right.__class__ in JOINED:
        return m.set_operation(function, left, right)
    try:
        result = function(left, right)
    except TypeError as error:
        raise _unsupported(m, symbol, left, right, error) from None
    return _checked(m, result) if result.__class__ is int else result


def _by_methods(m: Machine, left: Any, right: Any, name: str, reflected: str) -> Any:
    """Call `__add__` and `__radd__` of kernel classes; return NotImplemented if there is none."""
    left_class, right_class = m.class_of(left), m.class_of(right)
    calls = [(left_class.find(name), left, right), (right_class.find(reflected), right, left)]
    if left_class is right_class:
        del calls[1]
    elif right_class.is_a(left_class) and right_class.find(reflected) is not left_class.find(
        reflected
    ):
        calls.reverse()
    for method, owner, argument in calls:
        if method is not UNSET:
            result = m.call(method, (owner, argument), {})
            if result is not NotImplemented:
                return result
    return NotImplemented


def _plain_operands(m: Machine, symbol: str, left: Any, right: Any) -> tuple[Any, Any]:
    """Check that instances among the operands are numbers, text or containers, too."""
    if symbol == "*" and (isinstance(left, SEQUENCES) or isinstance(right, SEQUENCES)):
        left, right = _as_count(m, left), _as_count(m, right)
    for operand in (left, right):
        if operand.__class__ in INSTANCES and m.class_of(operand).payload in m.opaque:
            raise _unsupported(m, symbol, left, right, None)
    return left, right


def _as_count(m: Machine, value: Any) -> Any:
    """Return the repetition count of a sequence if the value defines `__index__`."""
    kind: Any = value.__class__
    counts = kind in m.opaque and m.class_of(value).find("__index__") is not UNSET
    return m.index(value) if counts else value


def _unsupported(
    m: Machine, symbol: str, left: Any, right: Any, error: TypeError | None
) -> TypeError:
    """Return Python's error, with the names of the kernel's classes."""
    text = str(error) if error is not None else ""
    if error is not None and not text.startswith("unsupported operand"):
        return error
    shown = "** or pow()" if symbol == "**" else symbol
    kinds = f"'{m.class_of(left).name}' and '{m.class_of(right).name}'"
    return TypeError(f"unsupported operand type(s) for {shown}: {kinds}")


def _is_type(value: Any) -> bool:
    return isinstance(value, Class | Union) or value is None or hasattr(value, "is_form")


def binary(symbol: str) -> Operation:
    specialised = {"+": add, "-": subtract, "*": multiply}
    if symbol in specialised:
        return specialised[symbol]
    function, _, _, guard = BINARY[symbol]

    def apply(m: Machine, left: Any, right: Any) -> Any:
        if left.__class__ in NUMBERS and right.__class__ in NUMBERS:
            guard(m, left, right)
            return _checked(m, function(left, right))
        return _dispatch(m, symbol, left, right)

    return apply


OPERATIONS: dict[str, Operation] = {symbol: binary(symbol) for symbol in BINARY}


def in_place(m: Machine, symbol: str, left: Any, right: Any) -> Any:
    """Execute `left op= right` and return the result."""
    kind = left.__class__
    _, function, name, guard = BINARY[symbol]
    if kind in INSTANCES:
        method = left.cls.find(f"__i{name}__")
        if method is not UNSET:
            result = m.call(method, (left, right), {})
            if result is not NotImplemented:
                return result
        if isinstance(left, list) and symbol == "+":
            return m.extend_list(left, right)
        return OPERATIONS[symbol](m, left, right)
    if kind is list and symbol == "+":
        return m.extend_list(left, right)
    if kind is list or kind is dict or isinstance(left, set):
        guard(m, left, right)
        if kind is not list:
            return m.set_operation(function, left, right)
        return function(left, right)
    served = UNSET if kind in NUMBERS else m.class_of(left).find(f"__i{name}__")
    if served.__class__ is Builtin:
        return served.call(m, left, right)
    try:
        return OPERATIONS[symbol](m, left, right)
    except TypeError as error:
        wrong, _, kinds = str(error).partition(f" for {symbol}: ")
        raise TypeError(f"{wrong} for {symbol}=: {kinds}") if kinds else error from None


# ---- unary operators ----------------------------------------------------------------------------

UNARY: dict[str, tuple[Any, str]] = {
    "-": (operator.neg, "__neg__"),
    "+": (operator.pos, "__pos__"),
    "~": (operator.invert, "__invert__"),
}


def unary(m: Machine, symbol: str, value: Any) -> Any:
    """Return the result of a unary operator, such as `-value`."""
    function, name = UNARY[symbol]
    if value.__class__ in INSTANCES:
        method = value.cls.find(name)
        if method is not UNSET:
            return m.call(method, (value,), {})
        if value.cls.payload in m.opaque:
            raise TypeError(f"bad operand type for unary {symbol}: '{value.cls.name}'")
    return function(value)
