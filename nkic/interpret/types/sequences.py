"""`list` and `tuple`, and sorting."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from nkic.base.device import DeviceBound, DeviceRange
from nkic.interpret import containers
from nkic.interpret.compare import FLAT
from nkic.interpret.containers import (
    DICT_ITEMS,
    DICT_KEYS,
    DICT_VALUES,
    KernelFrozenSet,
    KernelSet,
    ordered,
    unordered,
)
from nkic.interpret.objects import Builtin, Class, DictInstance, ListInstance, TupleInstance
from nkic.interpret.tables import (
    builtin_class,
    call_host,
    check_arity,
    check_call,
    class_method,
    constructor,
    getter,
    host_method,
    inheritable,
    method,
    no_extra_cost,
)

if TYPE_CHECKING:
    from nkic.interpret.machine import Machine


# ---- `range` and `slice` ------------------------------------------------------------------------

RANGE = builtin_class("range", range)
SLICE = builtin_class("slice", slice)


@constructor(RANGE)
def make_range(m: Machine, cls: Class, /, *args: Any, **named: Any) -> range | DeviceRange:
    """Return `range(stop)` or `range(start, stop, step)`, or a loop on the device.

    Raises if the range is too long to iterate over.
    """
    check_call("range", args, named, 1, 3)
    for arg in args:
        if isinstance(arg, DeviceBound):
            return arg.counted(args)
    values = range(*(arg if arg.__class__ is int else _bound(m, arg) for arg in args))
    reach = abs(values.stop - values.start)  # `len` overflows for the largest ranges
    m.allow_length(-(-reach // abs(values.step)) if values else 0, "the range")
    return values


def _bound(m: Machine, value: Any) -> int:
    if hasattr(value, "refuse"):
        value.refuse()
    return int(call_host(m, m.index, (value,)))


def _scanned(m: Machine, values: range, item: Any) -> None:
    if item.__class__ is not int and item.__class__ is not bool:
        m.charge(16 * len(values))


@method(RANGE, "index")
def _index(m: Machine, values: range, item: Any, /) -> int:
    _scanned(m, values, item)
    return range.index(values, item)


@method(RANGE, "count")
def _count(m: Machine, values: range, item: Any, /) -> int:
    _scanned(m, values, item)
    return range.count(values, item)


getter(RANGE, "start")(lambda m, values: values.start)
getter(RANGE, "stop")(lambda m, values: values.stop)
getter(RANGE, "step")(lambda m, values: values.step)


# ---- slice --------------------------------------------------------------------------------------


@constructor(SLICE)
def make_slice(m: Machine, cls: Class, /, *args: Any, **named: Any) -> slice:
    """Return `slice(stop)`. Nested slices are refused: freeing them overflows the C stack."""
    check_call("slice", args, named, 1, 3)
    if any(isinstance(arg, slice) for arg in args):
        raise TypeError("slice bounds cannot be slices")
    m.allocate(56)
    return slice(*args)


@method(SLICE, "indices")
def _indices(m: Machine, bounds: slice, length: Any, /) -> Any:
    return call_host(m, slice.indices, (bounds, m.index(length)))


getter(SLICE, "start")(lambda m, bounds: bounds.start)
getter(SLICE, "stop")(lambda m, bounds: bounds.stop)
getter(SLICE, "step")(lambda m, bounds: bounds.step)


LIST = builtin_class("list", list)
TUPLE = builtin_class("tuple", tuple)
_NUMBERS = frozenset({int, float, bool})
_CHARACTERS_PER_STEP = 4096  # characters compared per step


# ---- creation -----------------------------------------------------------------------------------


@constructor(LIST)
def make_list(m: Machine, cls: Class, /, *args: Any, **named: Any) -> list[Any]:
    check_call("list", args, named, 0, 1)
    return m.to_list(args[0]) if args else []


inheritable(LIST)(lambda m, cls, payload, args, named: ListInstance())


@method(LIST, "__init__")
def _init(m: Machine, values: Any, /, *args: Any, **named: Any) -> None:
    check_call("list", args, named, 0, 1)
    elements = m.to_list(args[0]) if args else []
    list.clear(values)
    list.extend(values, elements)


@constructor(TUPLE)
def make_tuple(m: Machine, cls: Class, /, *args: Any, **named: Any) -> tuple[Any, ...]:
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


def _append(m: Machine, values: Any, item: Any, /) -> None:
    m.left -= 3
    call_host(m, list.append, (values, item))
    if len(values) > m.limits.length:
        m.allow_length(list.__len__(values), "the list")


# Called most of all: Python's own method checks the list.
LIST.members["append"] = Builtin("list.append", _append)


@method(LIST, "extend")
def _extend(m: Machine, values: Any, iterable: Any, /) -> None:
    m.extend_list(values, list(values) if iterable is values else iterable)


@method(LIST, "insert")
def _insert(m: Machine, values: Any, index: Any, item: Any, /) -> None:
    m.charge(3 + (list.__len__(values) >> 5))
    list.insert(values, m.index(index), item)
    m.allow_length(list.__len__(values), "the list")


@method(LIST, "pop")
def _pop(m: Machine, values: Any, index: Any = -1, /) -> Any:
    position = index if index.__class__ is int else m.index(index)
    if position != -1:
        m.charge(list.__len__(values) >> 5)
    return list.pop(values, position)


@method(LIST, "remove")
def _remove(m: Machine, values: Any, item: Any, /) -> None:
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
        position = _find(m, values, item, *_bounds(m, values, start, stop))
        if position < 0:
            absent = f"{m.repr(item)} is not in list" if kind is list else _NOT_IN_TUPLE
            raise ValueError(absent)
        return position

    def count(m: Machine, values: Any, item: Any, /) -> int:
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


# ---- `dict` and its views -----------------------------------------------------------------------

DICT = builtin_class("dict", dict)
KEYS = builtin_class("dict_keys", DICT_KEYS)
VALUES = builtin_class("dict_values", DICT_VALUES)
ITEMS = builtin_class("dict_items", DICT_ITEMS)


# ---- creation -----------------------------------------------------------------------------------


@constructor(DICT)
def make_dict(m: Machine, cls: Class, /, *args: Any, **named: Any) -> dict[Any, Any]:
    entries: dict[Any, Any] = {}
    _fill(m, entries, "dict", args, named)
    return entries


def _fill(m: Machine, entries: dict[Any, Any], name: str, args: Any, named: Any) -> None:
    check_arity(name, args, 0, 1)
    if args:
        containers.merge_pairs(m, entries, args[0])
    if named:
        containers.merge(m, entries, named)


inheritable(DICT)(lambda m, cls, payload, args, named: DictInstance())


@method(DICT, "__init__")
def _init_dict(m: Machine, owner: Any, /, *args: Any, **named: Any) -> None:
    _fill(m, owner, "dict", args, named)


@class_method(DICT, "fromkeys")
def _fromkeys(m: Machine, cls: Class, iterable: Any, value: Any = None, /) -> Any:
    entries: Any = {} if cls is DICT else m.call(cls, (), None)
    for key in m.iterate(iterable):
        m.put_item(entries, key, value)
        m.charge(2)
    return entries


# ---- methods ------------------------------------------------------------------------------------


@method(DICT, "get")
def _get(m: Machine, owner: Any, key: Any, default: Any = None, /) -> Any:
    m.check_key(key, dict.__len__(owner))
    return call_host(m, dict.get, (owner, key, default))


@method(DICT, "setdefault")
def _setdefault(m: Machine, owner: Any, key: Any, default: Any = None, /) -> Any:
    m.check_key(key, dict.__len__(owner))
    m.charge(containers.DICT_ENTRY)
    m.allow_length(dict.__len__(owner) + 1, "the dict")
    return call_host(m, dict.setdefault, (owner, key, default))


@method(DICT, "pop")
def _pop_key(m: Machine, owner: Any, key: Any, /, *default: Any) -> Any:
    m.check_key(key, dict.__len__(owner))
    return call_host(m, dict.pop, (owner, key, *default))


@method(DICT, "update")
def _update(m: Machine, owner: Any, /, *args: Any, **named: Any) -> None:
    _fill(m, owner, "update", args, named)


def _charge_entries(m: Machine, owner: Any, args: Any) -> None:
    m.charge(dict.__len__(owner) >> 1)


# `popitem` skips deleted entries at the end; Python keeps no count of them.
host_method(DICT, dict, "popitem", no_extra_cost)
host_method(DICT, dict, "clear", _charge_entries)
host_method(DICT, dict, "keys", no_extra_cost)
host_method(DICT, dict, "values", no_extra_cost)
host_method(DICT, dict, "items", no_extra_cost)


method(DICT, "copy")(lambda m, owner, /: containers.copy_dict(m, owner))


# ---- views --------------------------------------------------------------------------------------


for _cls in (KEYS, ITEMS):
    method(_cls, "isdisjoint")(
        lambda m, view, other, /: not any(m.contains(view, element) for element in m.iterate(other))
    )


# ---- `set` and `frozenset` ----------------------------------------------------------------------

SET = builtin_class("set", KernelSet)
FROZENSET = builtin_class("frozenset", KernelFrozenSet)


@constructor(SET)
def make_set(m: Machine, cls: Class, /, *args: Any, **named: Any) -> KernelSet:
    check_call("set", args, named, 0, 1)
    return containers.make_set(m, args[0] if args else ())


@constructor(FROZENSET)
def make_frozenset(m: Machine, cls: Class, /, *args: Any, **named: Any) -> KernelFrozenSet:
    check_call("frozenset", args, named, 0, 1)
    if args and args[0].__class__ is KernelFrozenSet:
        return args[0]
    return containers.make_frozenset(m, args[0] if args else ())


def _same_type(owner: Any, values: Any) -> Any:
    return KernelSet(values) if isinstance(owner, set) else KernelFrozenSet(values)


# ---- methods of both ----------------------------------------------------------------------------


def _union(m: Machine, owner: Any, /, *others: Any) -> Any:
    elements = containers.copy_set(m, owner)
    for other in others:
        containers.add_all(m, elements, other)
    return elements if isinstance(owner, set) else KernelFrozenSet(unordered(elements))


def _intersection(m: Machine, owner: Any, /, *others: Any) -> Any:
    elements: set[Any] = containers.copy_set(m, owner)
    for other in others:
        other_set = containers.as_set(m, other, len(elements))
        m.check_keys(elements, len(other_set))
        set.intersection_update(elements, other_set)
    return _same_type(owner, unordered(elements))


def _difference(m: Machine, owner: Any, /, *others: Any) -> Any:
    elements = containers.copy_set(m, owner)
    for other in others:
        set.difference_update(elements, containers.as_set(m, other, len(elements)))
    return _same_type(owner, unordered(elements))


def _symmetric_difference(m: Machine, owner: Any, other: Any, /) -> Any:
    elements = containers.copy_set(m, owner)
    other_set = containers.as_set(m, other, len(elements))
    m.allocate(8 * 3 * len(other_set))
    set.symmetric_difference_update(elements, other_set)
    return _same_type(owner, unordered(elements))


def _issubset(m: Machine, owner: Any, other: Any, /) -> bool:
    other_set = containers.as_set(m, other, 0)
    m.check_keys(owner, len(other_set))
    return len(owner) <= len(other_set) and all(
        element in other_set for element in unordered(owner)
    )


def _issuperset(m: Machine, owner: Any, other: Any, /) -> bool:
    other_set = containers.as_set(m, other, len(owner))
    return len(other_set) <= len(owner) and all(
        element in owner for element in unordered(other_set)
    )


def _isdisjoint_set(m: Machine, owner: Any, other: Any, /) -> bool:
    other_set = containers.as_set(m, other, len(owner))
    return not any(element in owner for element in unordered(other_set))


_OF_BOTH: dict[str, Callable[..., Any]] = {
    "copy": lambda m, owner, /: containers.copy_set(m, owner) if isinstance(owner, set) else owner,
    "union": _union,
    "intersection": _intersection,
    "difference": _difference,
    "symmetric_difference": _symmetric_difference,
    "issubset": _issubset,
    "issuperset": _issuperset,
    "isdisjoint": _isdisjoint_set,
}
for _name, _function in _OF_BOTH.items():
    for _cls in (SET, FROZENSET):
        method(_cls, _name)(_function)


# ---- methods that modify a set ------------------------------------------------------------------


@method(SET, "add")
def _add_one(m: Machine, owner: Any, item: Any, /) -> None:
    call_host(m, containers.add, (m, owner, item))


def _charge_element(m: Machine, owner: Any, args: Any) -> None:
    for item in args:
        m.check_key(item, len(owner))


host_method(SET, set, "discard", _charge_element)
host_method(SET, set, "remove", _charge_element)


@method(SET, "pop")
def _pop_element(m: Machine, owner: Any, /) -> Any:
    m.charge(len(owner))
    if not owner:
        raise KeyError("pop from an empty set")
    first = ordered(m, owner)[0]
    m.check_key(first, len(owner))
    set.discard(owner, first)
    return first


host_method(SET, set, "clear", lambda m, owner, args: m.charge(len(owner) >> 1))


@method(SET, "update")
def _update_set(m: Machine, owner: Any, /, *others: Any) -> None:
    for other in others:
        containers.add_all(m, owner, other)


def _replace_elements(m: Machine, owner: Any, elements: Any) -> None:
    set.clear(owner)
    set.update(owner, unordered(elements))


@method(SET, "intersection_update")
def _intersection_update(m: Machine, owner: Any, /, *others: Any) -> None:
    _replace_elements(m, owner, _intersection(m, owner, *others))


@method(SET, "difference_update")
def _difference_update(m: Machine, owner: Any, /, *others: Any) -> None:
    for other in others:
        set.difference_update(owner, containers.as_set(m, other, len(owner)))


@method(SET, "symmetric_difference_update")
def _symmetric_difference_update(m: Machine, owner: Any, other: Any, /) -> None:
    _replace_elements(m, owner, _symmetric_difference(m, owner, other))
