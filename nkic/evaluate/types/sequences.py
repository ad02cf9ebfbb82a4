"""`list` and `tuple`, and sorting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nkic.evaluate.compare import FLAT
from nkic.evaluate.objects import Builtin, Class, ListInstance, TupleInstance
from nkic.evaluate.tables import builtin_class, method
from nkic.evaluate.types.shared import (
    call_host,
    check_call,
    check_owner,
    constructor,
    host_method,
    inheritable,
)

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine

LIST = builtin_class("list", list)
TUPLE = builtin_class("tuple", tuple)
_NUMBERS = frozenset({int, float, bool})
_CHARACTERS_PER_STEP = 4096  # characters compared per step


# ---- creation -----------------------------------------------------------------------------------


@constructor(LIST)
def make_list(m: Machine, cls: Class, /, *args: Any, **named: Any) -> list[Any]:
    """Return `list(values)`."""
    check_call("list", args, named, 0, 1)
    return m.to_list(args[0]) if args else []


@inheritable(LIST)
def _list_content(m: Machine, cls: Class, payload: type, args: Any, named: Any) -> Any:
    return ListInstance()


def _init(m: Machine, values: Any, /, *args: Any, **named: Any) -> None:
    check_owner(m, values, list, "__init__")
    check_call("list", args, named, 0, 1)
    elements = m.to_list(args[0]) if args else []
    list.clear(values)
    list.extend(values, elements)


LIST.members["__init__"] = Builtin("list.__init__", _init)


@constructor(TUPLE)
def make_tuple(m: Machine, cls: Class, /, *args: Any, **named: Any) -> tuple[Any, ...]:
    """Return `tuple(values)`."""
    check_call("tuple", args, named, 0, 1)
    if not args:
        return ()
    if args[0].__class__ is tuple:
        return args[0]
    return tuple(m.to_list(args[0]))


@inheritable(TUPLE)
def _tuple_content(m: Machine, cls: Class, payload: type, args: Any, named: Any) -> Any:
    return TupleInstance(make_tuple(m, TUPLE, *args, **named))


# ---- methods of lists ---------------------------------------------------------------------------


@method(LIST, "append")
def _append(m: Machine, values: Any, item: Any, /) -> None:
    m.left -= 3
    call_host(m, list.append, (values, item))
    if len(values) > m.limits.length:
        m.allow_length(list.__len__(values), "the list")


@method(LIST, "extend")
def _extend(m: Machine, values: Any, iterable: Any, /) -> None:
    check_owner(m, values, list, "extend")
    m.extend_list(values, list(values) if iterable is values else iterable)


@method(LIST, "insert")
def _insert(m: Machine, values: Any, index: Any, item: Any, /) -> None:
    check_owner(m, values, list, "insert")
    m.charge(3 + (list.__len__(values) >> 5))
    list.insert(values, m.index(index), item)
    m.allow_length(list.__len__(values), "the list")


@method(LIST, "pop")
def _pop(m: Machine, values: Any, index: Any = -1, /) -> Any:
    check_owner(m, values, list, "pop")
    position = index if index.__class__ is int else m.index(index)
    if position != -1:
        m.charge(list.__len__(values) >> 5)
    return list.pop(values, position)


@method(LIST, "remove")
def _remove(m: Machine, values: Any, item: Any, /) -> None:
    check_owner(m, values, list, "remove")
    index = _find(m, values, item, 0, list.__len__(values))
    if index < 0:
        raise ValueError("list.remove(x): x not in list")
    m.charge(list.__len__(values) >> 5)
    if index < list.__len__(values):
        list.__delitem__(values, index)


def _charge_search(m: Machine, values: Any, item: Any) -> None:
    """Charge for comparing a flat value with all elements."""
    length = len(item) if isinstance(item, str | bytes) else 1
    m.charge(1 + len(values) * (1 + length // _CHARACTERS_PER_STEP) // 2)


def _find(m: Machine, values: Any, item: Any, start: int, stop: int) -> int:
    """Return the first index of an item in a range of indices, or -1."""
    kind: Any = list if isinstance(values, list) else tuple
    if item.__class__ in FLAT:
        _charge_search(m, values, item)
        try:
            return int(kind.index(values, item, start, stop))
        except ValueError:
            return -1
    index = start
    while index < min(stop, kind.__len__(values)):  # a kernel's `__eq__` may change the list
        m.charge(16)
        if m.equal(kind.__getitem__(values, index), item):
            return index
        index += 1
    return -1


def _bounds(m: Machine, values: Any, start: Any, stop: Any) -> tuple[int, int]:
    size = (list if isinstance(values, list) else tuple).__len__(values)
    positions = []
    for bound in (start, stop):
        position = m.index(bound) if bound is not None else size
        positions.append(max(position + size, 0) if position < 0 else position)
    return positions[0], min(positions[1], size)


def _searching(cls: Class, kind: Any) -> None:
    """Register `index` and `count` for lists or tuples."""

    def index(m: Machine, values: Any, item: Any, start: Any = 0, stop: Any = None, /) -> int:
        check_owner(m, values, kind, "index")
        position = _find(m, values, item, *_bounds(m, values, start, stop))
        if position < 0:
            absent = f"{m.repr(item)} is not in list" if kind is list else _NOT_IN_TUPLE
            raise ValueError(absent)
        return position

    def count(m: Machine, values: Any, item: Any, /) -> int:
        check_owner(m, values, kind, "count")
        if item.__class__ in FLAT:
            _charge_search(m, values, item)
            return int(kind.count(values, item))
        m.charge(16 * len(values))
        return sum(m.equal(element, item) for element in kind.__iter__(values))

    method(cls, "index")(index)
    method(cls, "count")(count)


_NOT_IN_TUPLE = "tuple.index(x): x not in tuple"
_searching(LIST, list)
_searching(TUPLE, tuple)


def _charge_length(m: Machine, values: Any, args: Any) -> None:
    m.charge(list.__len__(values) >> 4)


host_method(LIST, list, "clear", _charge_length)
host_method(LIST, list, "reverse", _charge_length)


@method(LIST, "copy")
def _copy(m: Machine, values: Any, /) -> list[Any]:
    check_owner(m, values, list, "copy")
    m.elements(list.__len__(values), "the list")
    return list.copy(values)


# ---- sorting ------------------------------------------------------------------------------------


class Ordered:
    """A sort key that Python's own sort compares by the machine's `<`."""

    __slots__ = ("m", "value")

    def __init__(self, m: Machine, value: Any) -> None:
        self.m = m
        self.value = value

    def __lt__(self, other: Ordered) -> bool:
        self.m.charge(2)
        return self.m.less(self.value, other.value)


def sort_keys(m: Machine, keys: list[Any]) -> list[Any]:
    """Return the keys for Python's sort: the values themselves if their comparison is cheap."""
    m.charge(1 + len(keys) * len(keys).bit_length() // 3)
    kinds = set(map(type, keys))
    if kinds <= _NUMBERS:
        return keys
    if kinds == {str} and max(map(len, keys)) <= _CHARACTERS_PER_STEP:
        return keys
    m.allocate(56 * len(keys))
    return [Ordered(m, key) for key in keys]


def sort_values(m: Machine, values: list[Any], key: Any, reverse: Any) -> list[Any]:
    """Return the values in ascending order. The sort is stable."""
    backwards = m.truth(reverse)
    m.elements(len(values), "the list")
    keys = values if key is None else [m.call(key, (value,), None) for value in values]
    keys = sort_keys(m, keys)
    if keys is values:
        return sorted(values, reverse=backwards)
    order = sorted(range(len(values)), key=keys.__getitem__, reverse=backwards)
    return [values[index] for index in order]


@method(LIST, "sort")
def _sort(m: Machine, values: Any, /, *, key: Any = None, reverse: Any = False) -> None:
    check_owner(m, values, list, "sort")
    before = list(list.__iter__(values))
    list.clear(values)  # as Python does, so that a key function cannot observe the list
    after = before
    try:
        after = sort_values(m, before, key, reverse)
    finally:
        changed = list.__len__(values) > 0
        list.__setitem__(values, slice(None), after)
    if changed:
        raise ValueError("list modified during sort")
