"""Iteration and unpacking."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from nkic.base.device import DeviceRange, KernelError
from nkic.interpret.objects import (
    INSTANCES,
    UNSET,
    Builtin,
    Class,
    ErrorInstance,
    Generator,
    LazyIterator,
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
    """The `set` type of kernel code."""

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


def iterate(m: Machine, value: Any, where: str = "") -> Iterable[Any]:
    """Return an iterable over the value that Python's `for` accepts."""
    kind = value.__class__
    if kind in _DIRECT:
        return value  # type: ignore[no-any-return]
    if kind in INSTANCES:
        return _of_instance(m, value)
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


def _of_instance(m: Machine, value: Any) -> Iterable[Any]:
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
    """Return the `count` values of `a, b = value`."""
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
