"""Comparison, hashing and membership, element by element for nested values.

Python's own functions would traverse shared containers for ever, and overflow the C stack in deep
ones.
"""

from __future__ import annotations

import operator
from binascii import crc32
from math import isnan
from typing import TYPE_CHECKING, Any

from nkic.base.device import KernelError
from nkic.interpret.containers import (
    DICT_ITEMS,
    DICT_KEYS,
    DICT_VALUES,
    KernelFrozenSet,
    charge_slots,
    unordered,
)
from nkic.interpret.objects import (
    INSTANCES,
    UNSET,
    Class,
    ErrorInstance,
    Function,
    Instance,
    Method,
)

if TYPE_CHECKING:
    from nkic.interpret.machine import Machine

FLAT = frozenset({int, float, bool, str, type(None), bytes, type(...), range})
_CONTAINER_STEPS = 24  # steps to compare a container
_ITEM_STEPS = 20  # steps to look up an item of a dict in a view of another one
_CLASS_STEPS = 8  # steps to find the methods that compare two objects
_METHOD_STEPS = 60  # steps to compare objects on behalf of Python's own containers
# Binary logarithms of the characters compared per step; only equality compares bytes at once.
_EQUAL_TEXT, _ORDERED_TEXT = 10, 6
_ORDERED = (list, tuple)
_SETS = (set, frozenset)
_SET_LIKE: Any = (*_SETS, DICT_KEYS, DICT_ITEMS)
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
            _charge_texts(m, symbol, left, right)
        return function(left, right)
    if left_kind in INSTANCES or right_kind in INSTANCES:
        result = _by_methods(m, symbol, left, right, method, reflected)
        if result is not NotImplemented:
            return result
    if isinstance(left, _ORDERED) and isinstance(right, _ORDERED):
        return _sequences(m, symbol, left, right)
    if isinstance(left, dict) and isinstance(right, dict) and symbol in ("==", "!="):
        return _dicts(m, left, right) is (symbol == "==")
    if isinstance(left, _SET_LIKE) and isinstance(right, _SET_LIKE):
        return _set_likes(m, symbol, left, right)
    if symbol in ("==", "!=") and (left_kind in INSTANCES or right_kind in INSTANCES):
        return _as_payload(m, function, left, right, symbol)
    if left_kind is slice and right_kind is slice and symbol in ("==", "!="):
        parts = ((s.start, s.stop, s.step) for s in (left, right))
        return _sequences(m, symbol, *parts)
    try:
        return function(left, right)
    except TypeError as error:
        raise _not_ordered(m, symbol, left, right, error) from None


def _charge_texts(m: Machine, symbol: str, left: Any, right: Any) -> None:
    """Charge for comparing a text, or bytes, with a flat value."""
    if right.__class__ is left.__class__ and left is not right:
        equality = symbol == "==" or symbol == "!="
        m.charge(min(len(left), len(right)) >> (_EQUAL_TEXT if equality else _ORDERED_TEXT))


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
    m.charge(_CLASS_STEPS)
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
    m.charge(_METHOD_STEPS)
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
    kind: Any = left.__class__
    if kind in FLAT and right.__class__ in FLAT:
        if kind is str or kind is bytes:
            _charge_texts(m, "==", left, right)
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
    m.charge(_CONTAINER_STEPS + 6 * min(len(left), len(right)))
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
    check_keys(m, left, len(right))
    return all(key in right and equal(m, value, right[key]) for key, value in left.items())


def _set_likes(m: Machine, symbol: str, left: Any, right: Any) -> bool:
    """Compare two sets, or views of dicts, whose values Python would compare by itself."""
    if symbol == "!=":
        return not _set_likes(m, "==", left, right)
    if symbol in (">", ">="):
        return _set_likes(m, {">": "<", ">=": "<="}[symbol], right, left)
    m.charge(_CONTAINER_STEPS)
    if not _OPERATORS[symbol][0](len(left), len(right)):
        return False
    if not isinstance(left, DICT_ITEMS) and not isinstance(right, DICT_ITEMS):
        check_keys(m, left, len(right))
        return all(element in right for element in unordered(left))
    m.charge(_ITEM_STEPS * len(left))
    return all(contains(m, right, element) for element in unordered(left))


def contains(m: Machine, container: Any, item: Any) -> bool:
    kind = container.__class__
    if kind in INSTANCES:
        method = container.cls.find("__contains__")
        if method is not UNSET:
            return bool(m.truth(m.call(method, (container, item), {})))
        if not isinstance(container, list | tuple | dict | str):
            return any(equal(m, item, element) for element in m.iterate(container))
    if isinstance(container, list | tuple):
        if item.__class__ in FLAT:
            m.charge(len(container) * (1 + _text_steps(item)))
            return item in container
        m.charge(8 * len(container))
        return any(equal(m, element, item) for element in container)
    if isinstance(container, str | bytes):
        # Python searches from the left, in linear time except for short operands.
        size = len(item) if isinstance(item, str | bytes) else 1
        bound = _SHORT_TEXT if len(container) < _SHORT_TEXT else _SHORT_PATTERN
        m.charge(1 + (len(container) >> 3) + (len(container) * min(size, bound) >> 6))
        return item in container
    if isinstance(container, range):
        if item.__class__ not in (int, bool):
            m.charge(16 * len(container))
        return item in container
    if isinstance(container, dict | set | frozenset | DICT_KEYS):
        check_key(m, item, len(container))
        return item in container
    if isinstance(container, DICT_ITEMS):
        if not isinstance(item, tuple) or len(item) != 2:
            return False
        key, value = tuple.__iter__(item)
        check_key(m, key, len(container.mapping))
        found = container.mapping.get(key, UNSET)
        return found is not UNSET and equal(m, found, value)
    if isinstance(container, DICT_VALUES):
        m.charge(8 * len(container))
        return any(equal(m, element, item) for element in container)
    if kind is Class:
        hook = container.hook("contains")
        if hook is not None:
            return bool(hook(m, container, item))
    return any(equal(m, item, element) for element in m.iterate(container, "in"))


def _text_steps(item: Any) -> int:
    """Return the steps of comparing a flat value with one that may be equal."""
    return len(item) >> _EQUAL_TEXT if item.__class__ is str or item.__class__ is bytes else 0


_SHORT_TEXT = 2500  # the text length from which on Python searches in linear time
_SHORT_PATTERN = 100  # the pattern length from which on Python searches in linear time


# ---- hashing ------------------------------------------------------------------------------------

_HASH_LIMIT = 1 << 63  # an upper bound of Python's hashes
_PLAIN_KEYS = frozenset({bool, type(None)})
# Numbers that others can be made to collide with, by themselves and as parts of tuples.
_COLLIDING = 1 << 60
_COLLIDING_PART = 1 << 32
_COLLIDING_FLOAT = 1 << 29
_PLAIN_KINDS = frozenset({str, bool, type(None)})


def check_key(m: Machine, key: Any, size: int) -> None:
    """Spend steps on looking up a key among `size` others: the one door before Python's hashes.

    Keys that can be crafted to collide pay for comparing with all others. Keys that are nested too
    deep are refused, so that no element of a set and no key of a dict is.
    """
    kind = key.__class__
    if kind is str:
        if len(key) >> _EQUAL_TEXT:
            m.charge(len(key) >> _EQUAL_TEXT)
    elif kind in _PLAIN_KEYS:
        return
    elif kind is int:
        if not -_COLLIDING < key < _COLLIDING:
            m.charge(size + 1)
    elif kind is tuple:
        _check_tuple(m, key, size, 0)
    elif kind in INSTANCES:
        m.charge(1 + (size >> 4))
    elif kind is bytes or kind is float:
        m.charge(1 + (size >> 4) + _text_steps(key))
    elif isinstance(key, frozenset):
        _check_frozenset(m, key, size, 0)


def check_keys(m: Machine, keys: Any, size: int) -> None:
    """Spend steps on looking up all keys of a dict, or elements of a set, among up to `size`."""
    charge_slots(m, keys)
    kinds = set(map(type, unordered(keys)))
    m.charge(len(keys) >> 1)
    if kinds <= _PLAIN_KINDS:
        lengths = sum(map(len, unordered(keys))) if kinds == {str} else 0
        m.charge(lengths >> _EQUAL_TEXT)
        return
    if kinds == {int} and max(unordered(keys)) < _COLLIDING and min(unordered(keys)) > -_COLLIDING:
        return
    for key in unordered(keys):
        check_key(m, key, size)


def _check_tuple(m: Machine, key: tuple[Any, ...], size: int, depth: int) -> None:
    """Charge for hashing and comparing a tuple, part by part."""
    _check_depth(m, depth)
    m.charge(4 + 4 * len(key))  # as long as so many steps take elsewhere
    for part in key:
        kind = part.__class__
        if kind is int:
            # -1 and -2 have the same hash
            if part == -2 or not -_COLLIDING_PART < part < _COLLIDING_PART:
                m.charge(size + 1)
        elif kind is str or kind is bytes:
            m.charge(_text_steps(part) if part else size + 1)
        elif kind is tuple:
            _check_tuple(m, part, size, depth + 1)
        elif kind is float:
            if part and not 1 / _COLLIDING_FLOAT < abs(part) < _COLLIDING_FLOAT:
                m.charge(size + 1)
        elif isinstance(part, frozenset):
            _check_frozenset(m, part, size, depth + 1)
        elif kind not in _PLAIN_KEYS:
            check_key(m, part, size)


def _check_depth(m: Machine, depth: int) -> None:
    if depth > m.limits.depth:
        raise KernelError(
            "too-deep",
            f"containers are nested to a depth of more than {m.limits.depth}",
            help="keep the parts in one flat list",
        )


def _check_frozenset(m: Machine, key: frozenset[Any], size: int, depth: int) -> None:
    """Charge for a frozen set, which Python hashes once and may compare at every look-up."""
    height, weight = _extent(m, key, depth)
    _check_depth(m, depth + height)
    m.charge(weight + size)


def _extent(m: Machine, value: Any, depth: int) -> tuple[int, int]:
    """Return the height of nested tuples and frozen sets, and the number of their parts.

    Shared parts count each time. Frozen sets remember their extent.
    """
    if value.__class__ is KernelFrozenSet and value.extent is not None:
        return value.extent
    if value.__class__ is not tuple and not isinstance(value, frozenset):
        return 0, 1
    _check_depth(m, depth)
    m.charge(1 + len(value))
    extents = [_extent(m, part, depth + 1) for part in unordered(value)]
    height = 1 + max((height for height, _ in extents), default=0)
    weight = 1 + sum(weight for _, weight in extents)
    if value.__class__ is KernelFrozenSet:
        value.extent = height, weight
    return height, weight


def hash_key(m: Machine, value: Any) -> int:
    """Return Python's own hash, by which dicts and sets find a value."""
    check_key(m, value, 0)
    return hash(value)


def stable_hash(m: Machine, value: Any) -> int:
    """Return a hash that is the same in every process; equal values have equal hashes."""
    check_key(m, value, 0)
    return _stable_hash(m, value)


def _stable_hash(m: Machine, value: Any) -> int:
    if isinstance(value, str) and (
        value.__class__ not in INSTANCES or m.class_of(value).find("__hash__") is UNSET
    ):
        m.charge(len(value) >> 6)
        return crc32(str.__str__(value).encode("utf-8", "surrogatepass"))
    if isinstance(value, bytes):
        m.charge(len(value) >> 6)
        return crc32(value)
    if value.__class__ is tuple:
        m.charge(8 + 8 * len(value))
        return hash(tuple([_stable_hash(m, part) for part in value]))
    if isinstance(value, frozenset):
        return _of_frozenset(m, value)
    if value is None or (isinstance(value, float) and isnan(value)):
        return 0  # Python hashes NaN by its address
    if isinstance(value, Class):
        return crc32(value.name.encode())
    if isinstance(value, Function | Method):
        return crc32(m.repr(value).encode())
    if value.__class__ in INSTANCES or isinstance(value, int | float | range):
        return hash(value)
    hash(value)  # raises `TypeError` if the value is unhashable
    return crc32(type(value).__qualname__.encode())


def _of_frozenset(m: Machine, value: frozenset[Any]) -> int:
    """Return the hash of a frozen set, which remembers it."""
    if isinstance(value, KernelFrozenSet) and value.stable_hash is not None:
        return value.stable_hash
    m.charge(4 * len(value))
    result = hash(frozenset([_stable_hash(m, part) for part in unordered(value)]))
    if isinstance(value, KernelFrozenSet):
        value.stable_hash = result
    return result


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
        return hash_key(m, plain_scalar(value))
    if isinstance(value, list | dict) or value.cls.find("__eq__") is not UNSET:
        raise TypeError(f"unhashable type: '{value.cls.name}'")
    return int(value.serial)
