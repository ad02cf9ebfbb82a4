"""Iteration and unpacking; and the items of containers: get, set, delete, grow, merge."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from nkic.base.device import DeviceRange, KernelError
from nkic.interpret.budget import POINTER
from nkic.interpret.objects import (
    INSTANCES,
    UNSET,
    Builtin,
    Class,
    ClassMethod,
    ErrorInstance,
    Function,
    Generator,
    LazyIterator,
    Method,
    active,
)

if TYPE_CHECKING:
    from nkic.interpret.machine import Machine

# ---- Sets whose iteration order does not depend on the process ----------------------------------
# Python orders sets by hash, and the hashes of strings differ between processes; compiled output
# must not. Sets of numbers keep Python's order.

_NUMBERS = (int, float)
_SORT_STEPS = 16  # steps per element that is sorted, besides those of its text


class KernelSet(set[Any]):
    __slots__ = ()
    __name__ = "set"

    def __iter__(self) -> Iterator[Any]:
        return iter(ordered(active(), self))

    def __repr__(self) -> str:
        return str(active().repr(self))


class KernelFrozenSet(frozenset[Any]):
    """The `frozenset` type of kernel code, which remembers what `compare` computes of it."""

    __slots__ = ("extent", "stable_hash")
    __name__ = "frozenset"

    extent: tuple[int, int] | None
    stable_hash: int | None

    def __new__(cls, values: Any = ()) -> KernelFrozenSet:
        """Return the set of values that `check_key` admitted."""
        elements = super().__new__(cls, values)
        elements.extent = elements.stable_hash = None
        return elements

    def __iter__(self) -> Iterator[Any]:
        return iter(ordered(active(), self))

    def __repr__(self) -> str:
        return str(active().repr(self))


KernelSet.__name__ = KernelSet.__qualname__ = "set"
KernelFrozenSet.__name__ = KernelFrozenSet.__qualname__ = "frozenset"


def unordered(values: Any) -> Iterator[Any]:
    """Iterate over a set in the order of its hashes, over other values in their own order."""
    if isinstance(values, set):
        return set.__iter__(values)
    return frozenset.__iter__(values) if isinstance(values, frozenset) else iter(values)


def ordered(m: Machine, values: set[Any] | frozenset[Any]) -> list[Any]:
    """Return the elements of a set in the order in which kernels see them."""
    m.elements(len(values), "the list")
    charge_slots(m, values)
    elements = list(unordered(values))
    if all(isinstance(value, _NUMBERS) and value == value for value in elements):
        return elements
    m.charge(_SORT_STEPS * len(elements))
    places = [_place(m, value) for value in elements]
    return [elements[at] for at in sorted(range(len(elements)), key=places.__getitem__)]


def _place(m: Machine, value: Any) -> tuple[Any, ...]:
    """Return the sort key of a value: class, text, and what tells apart objects of one text."""
    if value.__class__ is str:
        return "str", m.repr(value)
    if value.__class__ in INSTANCES and not isinstance(value, str | tuple):
        return value.cls.name, "", value.serial
    parts = unordered(value) if isinstance(value, tuple | frozenset) else (value,)
    return type(value).__name__, m.repr(value), sorted(map(m.rank, parts))


# --------------------------------------------------------------------------------------------------

# The types of Python's own views and iterators.
_EMPTY: dict[Any, Any] = {}
DICT_KEYS: Any = type(_EMPTY.keys())
DICT_VALUES: Any = type(_EMPTY.values())
DICT_ITEMS: Any = type(_EMPTY.items())
HOST_ITERATORS: tuple[type, ...] = tuple(
    dict.fromkeys(
        type(iterator)
        for iterator in (
            *(iter([]), iter(()), iter(range(0)), iter(range(1 << 70)), iter(""), iter("é")),
            *(iter(b""), iter(set()), reversed([]), reversed(())),
            *(iter(_EMPTY), iter(_EMPTY.values()), iter(_EMPTY.items())),
            *(reversed(_EMPTY), reversed(_EMPTY.values()), reversed(_EMPTY.items())),
        )
    )
)

_PLAIN: tuple[Any, ...] = (list, tuple, dict, str)
_DIRECT: frozenset[Any] = frozenset(
    {
        *(list, tuple, range, str, dict, bytes, LazyIterator, Generator),
        *(DICT_KEYS, DICT_VALUES, DICT_ITEMS),
        *HOST_ITERATORS,
    }
)
_VIEWS = (DICT_KEYS, DICT_VALUES, DICT_ITEMS)


def charge_slots(m: Machine, table: Any) -> None:
    """Charge for reading a set, dict or view: Python keeps a slot for each element deleted."""
    held = gc.get_referents(table)[0] if table.__class__ in _VIEWS else table
    m.charge(held.__sizeof__() >> 10)


def iterate(m: Machine, value: Any, where: str = "") -> Iterable[Any]:
    """Return an iterable over the value that Python's `for` accepts."""
    kind = value.__class__
    if kind in _DIRECT:
        if kind is dict or kind in _VIEWS:
            charge_slots(m, value)
        return value  # type: ignore[no-any-return]
    if kind in INSTANCES:
        return _iterator_of_instance(m, value)
    if isinstance(value, set | frozenset):
        return iter(ordered(m, value))
    served = m.class_of(value).find("__iter__")
    if served.__class__ is Builtin:
        return served.call(m, value)  # type: ignore[no-any-return]
    hook = value.hook("iterate") if kind is Class else None
    if hook is not None:
        return hook(m, value)  # type: ignore[no-any-return]
    if hasattr(value, "refuse"):
        value.refuse()
    if where == "in":
        raise TypeError(f"argument of type '{m.class_of(value).name}' is not iterable")
    if isinstance(value, DeviceRange):
        raise KernelError(
            "device-loop-misuse",
            "only a `for` statement can iterate over a loop on the device",
            help="write a `for` statement, or use `range`",
        )
    raise TypeError(f"'{m.class_of(value).name}' object is not iterable")


def iterate_each(m: Machine, value: Any) -> Iterable[Any]:
    """Like `iterate`, for a comprehension or generator expression."""
    if isinstance(value, DeviceRange):
        raise KernelError(
            "device-loop-misuse",
            "a comprehension cannot run on the device",
            help="write a `for` statement, or use `range`",
        )
    return iterate(m, value)


def _iterator_of_instance(m: Machine, value: Any) -> Iterable[Any]:
    method = value.cls.find("__iter__")
    if method is None:
        raise TypeError(f"'{value.cls.name}' object is not iterable")
    if method is not UNSET:
        iterator = m.call(method, (value,), None)
        if iterator.__class__ in INSTANCES and iterator.cls.find("__next__") is not UNSET:
            return LazyIterator(m, "iterator", _by_next(m, iterator))
        if iterator.__class__ in _DIRECT and hasattr(iterator, "__next__"):
            return iterator  # type: ignore[no-any-return]
        raise TypeError(f"iter() returned non-iterator of type '{m.class_of(iterator).name}'")
    for kind in _PLAIN:
        if isinstance(value, kind):
            return kind.__iter__(value)  # type: ignore[no-any-return]
    if value.cls.find("__getitem__") is not UNSET:
        return LazyIterator(m, "iterator", _by_items(m, value))
    raise TypeError(f"'{value.cls.name}' object is not iterable")


def _by_next(m: Machine, iterator: Any) -> Iterator[Any]:
    method = iterator.cls.find("__next__")
    while True:
        m.charge(1)
        try:
            value = m.call(method, (iterator,), None)
        except ErrorInstance as error:
            if any(cls.name == "StopIteration" for cls in error.cls.mro):
                return
            raise
        except StopIteration:
            return
        yield value


def _by_items(m: Machine, value: Any) -> Iterator[Any]:
    method, index = value.cls.find("__getitem__"), 0
    while True:
        m.charge(1)
        try:
            element = m.call(method, (value, index), None)
        except IndexError:
            return
        except ErrorInstance as error:
            if any(cls.name in ("IndexError", "StopIteration") for cls in error.cls.mro):
                return
            raise
        yield element
        index += 1


def delegate(m: Machine, value: Any) -> Any:
    """Execute `yield from value`."""
    if value.__class__ is Generator:
        sent = None
        while True:
            try:
                yielded = m.resume(value, sent)
            except StopIteration as stop:
                return stop.value
            try:
                sent = yield yielded
            except GeneratorExit:
                if m.closing:
                    value.values.close()
                raise
            except Exception as error:
                try:
                    sent = yield m.resume(value, error, "throw")
                except StopIteration as stop:
                    return stop.value
    for element in iterate(m, value):
        m.charge(1)
        yield element
    return None


def unpack(m: Machine, value: Any, count: int) -> Sequence[Any]:
    if isinstance(value, list | tuple) and value.__class__ not in INSTANCES:
        elements: Sequence[Any] = value
        if len(elements) == count:
            return elements
        too_many = len(elements) > count
        size = len(elements)
    else:
        try:
            each = iter(iterate(m, value))
        except TypeError as error:
            if "is not iterable" in str(error):
                kind = m.class_of(value).name
                raise TypeError(f"cannot unpack non-iterable {kind} object") from None
            raise
        elements = []
        for element in each:
            m.charge(1)
            elements.append(element)
            if len(elements) > count:
                break
        size, too_many = len(elements), len(elements) > count
    if too_many:
        raise ValueError(f"too many values to unpack (expected {count})")
    if size < count:
        raise ValueError(f"not enough values to unpack (expected {count}, got {size})")
    return elements


def unpack_starred(m: Machine, value: Any, before: int, after: int) -> list[Any]:
    """Return the values of `a, *b, c = value`."""
    elements = m.extend_list([], value)
    size, minimum = len(elements), before + after
    if size < minimum:
        raise ValueError(f"not enough values to unpack (expected at least {minimum}, got {size})")
    end = size - after
    return [*elements[:before], elements[before:end], *elements[end:]]


# ---- Items of containers ------------------------------------------------------------------------

_PLAIN_SEQUENCES: tuple[Any, ...] = (list, tuple, str)
_SEQUENCES = frozenset({list, tuple, str, bytes, range})
_KEYED: Any = (set, frozenset, dict)
# Classes of values whose text, or order of creation, tells them apart.
_ORDERED_BY_TEXT: frozenset[Any] = INSTANCES | {
    *(int, float, bool, str, bytes, tuple, range, type(None), type(...), KernelFrozenSet),
    *(Class, Function, Method),
}
DICT_ENTRY = 25  # steps for the bytes of an entry
_SET_ENTRY = 10  # steps for an element that may be new


def item(m: Machine, owner: Any, key: Any) -> Any:
    kind = owner.__class__
    if kind is dict:
        m.check_key(key, len(owner))
        return owner[key]
    if kind in _SEQUENCES:
        return _of_sequence(m, owner, key)
    if kind in INSTANCES:
        return _of_instance(m, owner, key)
    if kind is Class:
        return _of_class(m, owner, key)
    method = m.class_of(owner).find("__getitem__")
    if method is not UNSET:
        return method.call(m, owner, key)
    if hasattr(owner, "is_form"):
        return owner
    if hasattr(owner, "refuse"):
        owner.refuse()
    raise TypeError(f"'{m.class_of(owner).name}' object is not subscriptable")


def _of_sequence(m: Machine, owner: Any, key: Any) -> Any:
    if key.__class__ is slice:
        bounds = _bounds(m, key)
        first, last, step = bounds.indices(len(owner))
        count = len(range(first, last, step))
        if owner.__class__ is not range:
            m.elements(count, f"the {owner.__class__.__name__}")
        return owner[bounds]
    if key.__class__ is int or key.__class__ is bool:
        return owner[key]
    if key.__class__ in INSTANCES:
        return owner[m.index(key)]
    if hasattr(key, "refuse"):
        key.refuse()
    return owner[key]  # raises Python's error about the type


def _bounds(m: Machine, key: slice) -> slice:
    parts = (key.start, key.stop, key.step)
    return slice(*(None if part is None else _bound(m, part) for part in parts))


def _bound(m: Machine, value: Any) -> int:
    try:
        return m.index(value)
    except TypeError:
        if hasattr(value, "refuse"):
            value.refuse()
        raise TypeError(
            "slice indices must be integers or None or have an __index__ method"
        ) from None


def _of_instance(m: Machine, owner: Any, key: Any) -> Any:
    method = owner.cls.find("__getitem__")
    if method is not UNSET:
        return m.call(method, (owner, key), None)
    if isinstance(owner, dict):
        m.check_key(key, dict.__len__(owner))
        if dict.__contains__(owner, key):
            return dict.__getitem__(owner, key)
        method = m.class_of(owner).find("__missing__")
        if method is not UNSET:
            return m.call(method, (owner, key), None)
        raise KeyError(key)
    for kind in _PLAIN_SEQUENCES:
        if isinstance(owner, kind):
            if key.__class__ is int:
                return kind.__getitem__(owner, key)
            m.elements(len(owner), "the copy")
            return _of_sequence(m, kind.__getitem__(owner, slice(None)), key)
    raise TypeError(f"'{owner.cls.name}' object is not subscriptable")


def _of_class(m: Machine, owner: Class, key: Any) -> Any:
    """Return `Mode["FAST"]` for an enumeration; `Row[int]` returns the class itself."""
    hook = owner.hook("item")
    if hook is not None:
        return hook(m, owner, key)
    method = owner.find("__class_getitem__")
    if isinstance(method, ClassMethod):
        return m.call(method.function, (owner, key), None)
    if owner.machine is not None and not owner.extra.get("generic"):
        raise TypeError(f"type '{owner.name}' is not subscriptable")
    return owner


def put(m: Machine, owner: Any, key: Any, value: Any) -> None:
    kind = owner.__class__
    if kind is dict:
        if key.__class__ is not str:
            m.check_key(key, len(owner))
        m.left -= DICT_ENTRY
        if len(owner) >= m.limits.length:
            m.allow_length(len(owner) + 1, "the dict")
        owner[key] = value
    elif kind is list:
        _put_in_list(m, owner, key, value)
    elif kind in INSTANCES:
        _put_in_instance(m, owner, key, value)
    else:
        method = m.class_of(owner).find("__setitem__")
        if method is not UNSET:
            method.call(m, owner, key, value)
            return
        if hasattr(owner, "refuse"):
            owner.refuse()
        text = f"'{m.class_of(owner).name}' object does not support item assignment"
        raise TypeError(text)


def _put_in_list(m: Machine, owner: list[Any], key: Any, value: Any) -> None:
    if key.__class__ is slice:
        values = to_list(m, value) if value is not owner else list(value)
        m.elements(len(values), "the list")
        m.allow_length(len(owner) + len(values), "the list")
        m.charge(len(owner) >> 5)
        list.__setitem__(owner, _bounds(m, key), values)
        return
    if key.__class__ is not int:
        key = m.index(key) if key.__class__ in INSTANCES else key
    list.__setitem__(owner, key, value)


def _put_in_instance(m: Machine, owner: Any, key: Any, value: Any) -> None:
    method = owner.cls.find("__setitem__")
    if method is not UNSET:
        m.call(method, (owner, key, value), None)
    elif isinstance(owner, dict):
        m.check_key(key, dict.__len__(owner))
        m.left -= DICT_ENTRY
        dict.__setitem__(owner, key, value)
    elif isinstance(owner, list):
        _put_in_list(m, owner, key, value)
    else:
        raise TypeError(f"'{owner.cls.name}' object does not support item assignment")


def remove(m: Machine, owner: Any, key: Any) -> None:
    if owner.__class__ in INSTANCES:
        method = owner.cls.find("__delitem__")
        if method is not UNSET:
            m.call(method, (owner, key), None)
            return
    if isinstance(owner, list):
        m.charge(len(owner) >> 5)
        if key.__class__ is slice:
            key = _bounds(m, key)
        list.__delitem__(owner, key if key.__class__ is slice else m.index(key))
    elif isinstance(owner, dict):
        m.check_key(key, dict.__len__(owner))
        dict.__delitem__(owner, key)
    elif hasattr(owner, "refuse"):
        owner.refuse()
    else:
        text = f"'{m.class_of(owner).name}' object doesn't support item deletion"
        raise TypeError(text)


# ---- building and growing -----------------------------------------------------------------------


def to_list(m: Machine, value: Any) -> list[Any]:
    return extend_list(m, [], value)


def extend_list(m: Machine, owner: list[Any], values: Any) -> list[Any]:
    kind = values.__class__
    if kind is list or kind is tuple or kind is range or kind is str or kind is dict:
        m.elements(len(values), "the list")
        m.allow_length(list.__len__(owner) + len(values), "the list")
        list.extend(owner, iterate(m, values))
        return owner
    limit = m.limits.length
    for value in m.iterate(values):
        m.charge(3)
        list.append(owner, value)
        if list.__len__(owner) > limit:
            m.allow_length(list.__len__(owner), "the list")
    return owner


def make_set(m: Machine, values: Iterable[Any]) -> KernelSet:
    elements = KernelSet()
    add_all(m, elements, values)
    return elements


def add_all(m: Machine, elements: set[Any], values: Iterable[Any]) -> None:
    """Add values to a set one by one, so that colliding hashes pay for their comparisons."""
    if isinstance(values, set | frozenset):
        charge_slots(m, values)
        values = list(unordered(values))  # it may be the set itself
    for value in m.iterate(values):
        add(m, elements, value)


def add(m: Machine, elements: set[Any], value: Any) -> None:
    m.charge(_SET_ENTRY)
    m.check_key(value, len(elements))
    set.add(elements, value)
    if value.__class__ not in _ORDERED_BY_TEXT:
        m.note_rank(value)
    if len(elements) > m.limits.length:
        m.allow_length(len(elements), "the set")


def copy_set(m: Machine, values: set[Any] | frozenset[Any]) -> KernelSet:
    """Return a set of the same elements, which may have to be compared again."""
    m.allocate(3 * POINTER * len(values))
    m.check_keys(values, len(values))
    return KernelSet(unordered(values))


def make_frozenset(m: Machine, values: Iterable[Any]) -> KernelFrozenSet:
    return KernelFrozenSet(unordered(make_set(m, values)))


def as_set(m: Machine, values: Any, size: int) -> set[Any] | frozenset[Any]:
    """Return the values, to be looked up among `size` others, as a set for Python's own methods."""
    elements = values if isinstance(values, set | frozenset) else make_set(m, values)
    m.charge(len(elements))
    m.check_keys(elements, size)
    return elements


def set_operation(m: Machine, function: Any, left: Any, right: Any) -> Any:
    """Apply an operator of sets, dicts and dict views."""
    if isinstance(left, dict) and function.__name__ == "ior" and not isinstance(right, dict):
        merge_pairs(m, left, right)
        return left
    if isinstance(left, DICT_KEYS | DICT_ITEMS) or isinstance(right, DICT_KEYS | DICT_ITEMS):
        left, right = make_set(m, left), make_set(m, right)
    for part, other in ((left, right), (right, left)):
        if isinstance(part, _KEYED):
            m.check_keys(part, len(part) + (len(other) if isinstance(other, _KEYED) else 0))
    try:
        result = function(left, right)
    except TypeError as error:
        symbol = str(error).partition(":")[0]
        if not symbol.startswith("unsupported operand"):
            raise
        kinds = f"'{m.class_of(left).name}' and '{m.class_of(right).name}'"
        raise TypeError(f"{symbol}: {kinds}") from None
    if result.__class__ is not frozenset or all(isinstance(x, _NUMBERS) for x in unordered(result)):
        return result  # a copy of numbers would not keep Python's order
    return KernelFrozenSet(result)


def merge(m: Machine, target: dict[Any, Any], source: Any) -> None:
    pairs = mapping(m, source)
    if pairs is None:
        raise TypeError(f"'{m.class_of(source).name}' object is not a mapping")
    m.allocate(3 * POINTER * len(pairs))
    m.allow_length(len(target) + len(pairs), "the dict")
    m.check_keys(pairs, len(target) + len(pairs))
    dict.update(target, pairs)


def copy_dict(m: Machine, entries: dict[Any, Any]) -> dict[Any, Any]:
    m.elements(3 * dict.__len__(entries), "the dict")
    m.check_keys(entries, dict.__len__(entries))
    return dict.copy(entries)


def keyed(m: Machine, pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    entries: dict[Any, Any] = {}
    for key, value in pairs:
        put(m, entries, key, value)
    return entries


def mapping(m: Machine, value: Any) -> dict[Any, Any] | None:
    if isinstance(value, dict):
        return value
    if value.__class__ in INSTANCES and value.cls.find("keys") is not UNSET:
        keys = to_list(m, m.call(value.cls.find("keys"), (value,), None))
        return keyed(m, ((key, item(m, value, key)) for key in keys))
    return None


def merge_pairs(m: Machine, target: dict[Any, Any], source: Any) -> None:
    """Execute `found.update(given)` for a mapping or an iterable of pairs."""
    pairs = mapping(m, source)
    if pairs is not None:
        merge(m, target, pairs)
        return
    for number, pair in enumerate(m.iterate(source)):
        m.charge(DICT_ENTRY)
        try:
            parts = to_list(m, pair)
        except TypeError:
            text = f"cannot convert dictionary update sequence element #{number} to a sequence"
            raise TypeError(text) from None
        if len(parts) != 2:
            raise ValueError(
                f"dictionary update sequence element #{number} has length {len(parts)}; "
                "2 is required"
            )
        m.check_key(parts[0], len(target))
        dict.__setitem__(target, parts[0], parts[1])
        m.allow_length(len(target), "the dict")


def keyword_mapping(m: Machine, value: Any) -> dict[str, Any]:
    """Return the operand of `**` in a call as a dict."""
    keywords = mapping(m, value)
    if keywords is None:
        kind = m.class_of(value).name
        raise TypeError(f"argument after ** must be a mapping, not {kind}")
    m.allocate(3 * POINTER * len(keywords))
    if not all(isinstance(key, str) for key in keywords):
        raise TypeError("keywords must be strings")
    m.check_keys(keywords, 0)
    return {str(key): part for key, part in keywords.items()}
