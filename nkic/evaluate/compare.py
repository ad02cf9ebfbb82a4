"""Comparison, hashing and membership, element by element for nested values.

Python's own functions would traverse shared containers for ever, and overflow the C stack in deep
ones.
"""

from __future__ import annotations

import operator
from binascii import crc32
from math import isnan
from typing import TYPE_CHECKING, Any

from nkic.evaluate.errors import KernelError
from nkic.evaluate.iteration import DICT_ITEMS, DICT_KEYS, DICT_VALUES
from nkic.evaluate.objects import INSTANCES, UNSET, Class, ErrorInstance, Function, Instance, Method

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine

FLAT = frozenset({int, float, bool, str, type(None), bytes, type(...), range})
_CONTAINER_STEPS = 24  # steps to compare a container
_CHARACTERS_PER_STEP = 4096  # characters compared per step
_ORDERED = (list, tuple)
_SETS = (set, frozenset)
VIEWS: Any = (DICT_KEYS, DICT_VALUES, DICT_ITEMS)
_OPERATORS = {
    "==": (operator.eq, "__eq__", "__eq__"),
    "!=": (operator.ne, "__ne__", "__ne__"),
    "<": (operator.lt, "__lt__", "__gt__"),
    "<=": (operator.le, "__le__", "__ge__"),
    ">": (operator.gt, "__gt__", "__lt__"),
    ">=": (operator.ge, "__ge__", "__le__"),
}
COMPARISONS = {symbol: method for symbol, (_, method, _) in _OPERATORS.items()}


def compare(m: Machine, symbol: str, left: Any, right: Any) -> Any:
    """Return the result of a comparison operator, which need not be a truth value."""
    function, method, reflected = _OPERATORS[symbol]
    left_kind: Any = left.__class__
    right_kind: Any = right.__class__
    if left_kind in FLAT and right_kind in FLAT:
        if left_kind is str or left_kind is bytes:
            m.charge(_size(left) // _CHARACTERS_PER_STEP)
        return function(left, right)
    if left_kind in INSTANCES or right_kind in INSTANCES:
        result = _by_methods(m, symbol, left, right, method, reflected)
        if result is not NotImplemented:
            return result
    if isinstance(left, _ORDERED) and isinstance(right, _ORDERED):
        return _sequences(m, symbol, left, right)
    if isinstance(left, dict) and isinstance(right, dict) and symbol in ("==", "!="):
        return _dicts(m, left, right) is (symbol == "==")
    if isinstance(left, (*_SETS, *VIEWS)) and isinstance(right, (*_SETS, *VIEWS)):
        m.charge(_size(left) + _size(right))
    if symbol in ("==", "!=") and (left_kind in INSTANCES or right_kind in INSTANCES):
        return _as_payload(m, function, left, right, symbol)
    if left_kind is slice and right_kind is slice and symbol in ("==", "!="):
        parts = ((s.start, s.stop, s.step) for s in (left, right))
        return _sequences(m, symbol, *parts)
    try:
        return function(left, right)
    except TypeError as error:
        raise _not_ordered(m, symbol, left, right, error) from None


def _size(value: Any) -> int:
    return len(value)


def _as_payload(m: Machine, function: Any, left: Any, right: Any, symbol: str) -> bool:
    """Compare objects without `__eq__` by their number or text, or else by identity."""
    if not any(operand.__class__ in INSTANCES and _opaque(m, operand) for operand in (left, right)):
        kinds = (int, float, str, bytes)
        if isinstance(left, kinds) and isinstance(right, kinds):
            return bool(function(plain_scalar(left), plain_scalar(right)))
    return (left is right) is (symbol == "==")


def _opaque(m: Machine, value: Any) -> bool:
    return value.cls.payload in m.opaque


def plain_scalar(value: Any) -> Any:
    """Return the number, text or bytes that an object of a subclass is; others as they are."""
    for kind in (int, float, bytes):
        if isinstance(value, kind):
            return kind(value)  # type: ignore[arg-type]
    return str.__str__(value) if isinstance(value, str) else value


def _not_ordered(m: Machine, symbol: str, left: Any, right: Any, error: TypeError) -> TypeError:
    if "not supported between" not in str(error):
        return error
    kinds = f"'{m.class_of(left).name}' and '{m.class_of(right).name}'"
    return TypeError(f"'{symbol}' not supported between instances of {kinds}")


def _by_methods(m: Machine, symbol: str, left: Any, right: Any, method: str, reflected: str) -> Any:
    left_class, right_class = m.class_of(left), m.class_of(right)
    calls = [(left_class, method, left, right), (right_class, reflected, right, left)]
    if (
        right_class is not left_class
        and right_class.is_a(left_class)
        and right.__class__ in INSTANCES
    ):
        calls.reverse()
    for cls, name, owner, argument in calls:
        if owner.__class__ not in INSTANCES:
            continue
        result = _call_method(m, cls, name, owner, argument)
        if result is not NotImplemented:
            return result
    if symbol in ("==", "!=") or isinstance(left, (int, float, str, list, tuple, dict)):
        return NotImplemented
    kinds = f"'{left_class.name}' and '{right_class.name}'"
    raise TypeError(f"'{symbol}' not supported between instances of {kinds}")


def _call_method(m: Machine, cls: Class, name: str, owner: Any, argument: Any) -> Any:
    method = cls.find(name)
    if method is not UNSET and method is not None:
        return m.call(method, (owner, argument), {})
    if name == "__ne__":  # as `object.__ne__` does
        result = _call_method(m, cls, "__eq__", owner, argument)
        return NotImplemented if result is NotImplemented else not m.truth(result)
    return NotImplemented


def compare_by_method(m: Machine, name: str, left: Any, right: Any) -> Any:
    """Compare a kernel object on behalf of Python's own containers."""
    result = _call_method(m, left.cls, name, left, right)
    if result is NotImplemented and name == "__eq__":
        if isinstance(left, (int, float, str, bytes, tuple)) and not _opaque(m, left):
            return equal(m, left, right)
        return left is right or NotImplemented
    return result


# ---- containers ---------------------------------------------------------------------------------


def equal(m: Machine, left: Any, right: Any) -> bool:
    """Return `left is right or left == right`, as containers compare elements."""
    if left is right:
        return True
    if left.__class__ in FLAT and right.__class__ in FLAT:
        return bool(left == right)
    m.deepen()
    try:
        return bool(m.truth(compare(m, "==", left, right)))
    finally:
        m.level -= 1


def _sequences(m: Machine, symbol: str, left: Any, right: Any) -> bool:
    """Compare two lists, or two tuples, by the first elements that differ."""
    if isinstance(left, list) is not isinstance(right, list):
        if symbol in ("==", "!="):
            return symbol == "!="
        kinds = f"'{m.class_of(left).name}' and '{m.class_of(right).name}'"
        raise TypeError(f"'{symbol}' not supported between instances of {kinds}")
    m.charge(_CONTAINER_STEPS + min(len(left), len(right)))
    if symbol in ("==", "!=") and len(left) != len(right):
        return symbol == "!="
    for left_item, right_item in zip(left, right, strict=False):
        if not equal(m, left_item, right_item):
            if symbol in ("==", "!="):
                return symbol == "!="
            return bool(m.truth(compare(m, symbol, left_item, right_item)))
    return bool(_OPERATORS[symbol][0](len(left), len(right)))


def _dicts(m: Machine, left: dict[Any, Any], right: dict[Any, Any]) -> bool:
    m.charge(_CONTAINER_STEPS + len(left))
    if len(left) != len(right):
        return False
    return all(key in right and equal(m, value, right[key]) for key, value in left.items())


def contains(m: Machine, container: Any, item: Any) -> bool:
    """Return `item in container`."""
    kind = container.__class__
    if kind in INSTANCES:
        method = container.cls.find("__contains__")
        if method is not UNSET:
            return bool(m.truth(m.call(method, (container, item), {})))
        if not isinstance(container, list | tuple | dict | str):
            return any(equal(m, item, element) for element in m.iterate(container))
    if isinstance(container, list | tuple):
        m.charge(len(container))
        if item.__class__ in FLAT:
            return item in container
        return any(equal(m, element, item) for element in container)
    if isinstance(container, str | bytes):
        m.charge(len(container) >> 3)
        return item in container
    if isinstance(container, range):
        if item.__class__ not in (int, bool):
            m.charge(16 * len(container))
        return item in container
    if isinstance(container, dict | set | frozenset | VIEWS[0]):
        check_key(m, item, len(container))
        return item in container
    if isinstance(container, VIEWS):
        m.charge(len(container))
        return any(equal(m, element, item) for element in container)
    if kind is Class:
        hook = container.hook("contains")
        if hook is not None:
            return bool(hook(m, container, item))
    return any(equal(m, item, element) for element in m.iterate(container, "in"))


# ---- hashing ------------------------------------------------------------------------------------

_HASH_LIMIT = 1 << 63  # an upper bound of Python's hashes
_PLAIN_KEYS = frozenset({str, bool, type(None)})
_COLLIDING = 1 << 60  # larger integers may collide; inside tuples, smaller ones do
_COLLIDING_IN_TUPLES = 1 << 32


def check_key(m: Machine, key: Any, size: int) -> None:
    """Spend steps on looking up a key among `size` others.

    Keys that can be crafted to collide pay for comparing with all others.
    """
    kind = key.__class__
    if kind in _PLAIN_KEYS:
        return
    if kind is int:
        if not -_COLLIDING < key < _COLLIDING:
            m.charge(size + 1)
        return
    if kind is bytes or kind is float:
        m.charge(1 + (size >> 4))
        return
    has_own_hash = kind in INSTANCES and m.class_of(key).find("__hash__") is not UNSET
    if isinstance(key, tuple) and not has_own_hash:
        _check_tuple(m, key, size, 0)
    elif isinstance(key, frozenset):
        m.charge(1 + len(key) + (size >> 2))
    elif kind in INSTANCES:
        m.charge(1 + (size >> 4))


def _check_tuple(m: Machine, key: tuple[Any, ...], size: int, depth: int) -> None:
    if depth > m.limits.depth:
        raise KernelError(
            "too-deep",
            f"containers are nested to a depth of more than {m.limits.depth}",
            help="keep the parts in one flat list",
        )
    m.charge(1 + len(key))
    for part in key:
        kind = part.__class__
        if kind is int:
            if not -_COLLIDING_IN_TUPLES < part < _COLLIDING_IN_TUPLES:
                m.charge(size + 1)
        elif kind is tuple or kind is frozenset:
            if kind is frozenset:
                m.charge(1 + len(part) + size)
            else:
                _check_tuple(m, part, size, depth + 1)
        elif kind not in _PLAIN_KEYS:
            check_key(m, part, size)


def stable_hash(m: Machine, value: Any) -> int:
    """Return a hash that is the same in every process; equal values have equal hashes."""
    check_key(m, value, 0)
    if isinstance(value, str) and (
        value.__class__ not in INSTANCES or m.class_of(value).find("__hash__") is UNSET
    ):
        return crc32(str.__str__(value).encode("utf-8", "surrogatepass"))
    if isinstance(value, bytes):
        return crc32(value)
    if value.__class__ is tuple:
        m.charge(len(value))
        return hash(tuple([stable_hash(m, part) for part in value]))
    if isinstance(value, frozenset):
        m.charge(len(value))
        return hash(frozenset([stable_hash(m, part) for part in frozenset.__iter__(value)]))
    if value is None or (isinstance(value, float) and isnan(value)):
        return 0  # Python hashes NaN by its address
    if isinstance(value, Class):
        return crc32(value.name.encode())
    if isinstance(value, Function | Method):
        return crc32(repr(value).encode())
    if value.__class__ in INSTANCES or isinstance(value, int | float | range):
        return hash(value)
    hash(value)  # raises `TypeError` if the value is unhashable
    return crc32(type(value).__qualname__.encode())


def hash_instance(m: Machine, value: Any) -> int:
    """Return the hash of a kernel object for Python's own dicts and sets."""
    method = value.cls.find("__hash__")
    if method is not UNSET:
        if method is None:
            raise TypeError(f"unhashable type: '{value.cls.name}'")
        result = m.call(method, (value,), {})
        if not isinstance(result, int):
            raise TypeError("__hash__ method should return an integer")
        return int(result) if abs(int(result)) < _HASH_LIMIT else hash(int(result))
    if isinstance(value, tuple):
        check_key(m, tuple(value), 0)
        return tuple.__hash__(value)
    if isinstance(value, int | float | str) and not isinstance(value, Instance | ErrorInstance):
        return hash(plain_scalar(value))
    if isinstance(value, list | dict) or value.cls.find("__eq__") is not UNSET:
        raise TypeError(f"unhashable type: '{value.cls.name}'")
    return int(value.serial)
