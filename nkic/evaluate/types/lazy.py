"""The builtin functions that return or consume iterators.

Each iterator is a `LazyIterator`, which pays for every element: Python's own iterators would
recurse on the C stack.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from nkic.evaluate import exceptions
from nkic.evaluate.iteration import DICT_ITEMS, DICT_KEYS, DICT_VALUES
from nkic.evaluate.objects import INSTANCES, UNSET, Class, Function, Generator, LazyIterator
from nkic.evaluate.tables import builtin
from nkic.evaluate.types.functions import ITERATORS
from nkic.evaluate.types.shared import check_call, iterator_of, reject_keywords

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine

LAZY: dict[str, Any] = {}
_ITERATOR_BYTES = 400  # bytes
_CALL_STEPS = 10  # steps for an element that a function is called with
_EXHAUSTED = object()


def lazily(m: Machine, name: str, values: Iterator[Any]) -> LazyIterator:
    """Return an iterator over the values, which pay for themselves."""
    m.allocate(_ITERATOR_BYTES)
    return LazyIterator(m, name, values)


# ---- iterators ----------------------------------------------------------------------------------


@builtin("iter", LAZY)
def _iter(m: Machine, *args: Any, **named: Any) -> Any:
    check_call("iter", args, named, 1, 2)
    if len(args) == 2:
        if not is_callable(m, args[0]):
            raise TypeError("iter(v, w): v must be callable")
        return lazily(m, "callable_iterator", _until(m, *args))
    value = args[0]
    m.allocate(64)
    if value.__class__ in INSTANCES:
        method = value.cls.find("__iter__")
        if method is not UNSET and method is not None:
            return _returned_iterator(m, m.call(method, (value,), None))
    return iterator_of(m, value)


def _returned_iterator(m: Machine, iterator: Any) -> Any:
    if _is_iterator(m, iterator):
        return iterator
    raise TypeError(f"iter() returned non-iterator of type '{m.class_of(iterator).name}'")


def _is_iterator(m: Machine, value: Any) -> bool:
    kind = value.__class__
    if kind in INSTANCES:
        return value.cls.find("__next__") is not UNSET
    return kind is LazyIterator or kind is Generator or kind in ITERATORS


def _until(m: Machine, function: Any, sentinel: Any) -> Iterator[Any]:
    while True:
        m.charge(_CALL_STEPS)
        value = _call_or_exhausted(m, function, ())
        if value is _EXHAUSTED or m.equal(value, sentinel):
            return
        yield value


def _call_or_exhausted(m: Machine, function: Any, args: Sequence[Any]) -> Any:
    """Return the result of a function, or `_EXHAUSTED` if it raises `StopIteration`."""
    try:
        return m.call(function, args, None)
    except Exception as error:
        if exceptions.is_a(m, error, "StopIteration"):
            return _EXHAUSTED
        raise


@builtin("next", LAZY)
def _next(m: Machine, *args: Any, **named: Any) -> Any:
    check_call("next", args, named, 1, 2)
    if not _is_iterator(m, args[0]):
        raise TypeError(f"'{m.class_of(args[0]).name}' object is not an iterator")
    try:
        if args[0].__class__ in INSTANCES:
            return m.call(args[0].cls.find("__next__"), (args[0],), None)
        return next(args[0])
    except Exception as error:
        if len(args) == 2 and exceptions.is_a(m, error, "StopIteration"):
            return args[1]
        raise


@builtin("enumerate", LAZY)
def _enumerate(m: Machine, iterable: Any, start: Any = 0) -> LazyIterator:
    return lazily(m, "enumerate", _numbered(m, iterator_of(m, iterable), m.index(start)))


def _numbered(m: Machine, values: Iterator[Any], number: int) -> Iterator[tuple[int, Any]]:
    for value in values:
        m.charge(8)
        yield number, value
        number += 1


@builtin("map", LAZY)
def _map(m: Machine, *args: Any, **named: Any) -> LazyIterator:
    reject_keywords("map", named)
    if len(args) < 2:
        raise TypeError("map() must have at least two arguments.")
    parts = [iterator_of(m, value) for value in args[1:]]
    if len(parts) == 1:
        return lazily(m, "map", _mapped_one(m, args[0], parts[0]))
    return lazily(m, "map", _mapped(m, args[0], parts))


def _mapped_one(m: Machine, function: Any, values: Iterator[Any]) -> Iterator[Any]:
    for value in values:
        m.charge(_CALL_STEPS)
        result = _call_or_exhausted(m, function, (value,))
        if result is _EXHAUSTED:
            return
        yield result


def _mapped(m: Machine, function: Any, parts: list[Iterator[Any]]) -> Iterator[Any]:
    while True:
        m.charge(_CALL_STEPS + 2 * len(parts))
        values: list[Any] = []
        for part in parts:
            value = next(part, _EXHAUSTED)
            if value is _EXHAUSTED:
                return
            values.append(value)
        result = _call_or_exhausted(m, function, values)
        if result is _EXHAUSTED:
            return
        yield result


@builtin("filter", LAZY)
def _filter(m: Machine, function: Any, iterable: Any, /) -> LazyIterator:
    return lazily(m, "filter", _filtered(m, function, iterator_of(m, iterable)))


def _filtered(m: Machine, function: Any, values: Iterator[Any]) -> Iterator[Any]:
    for value in values:
        m.charge(_CALL_STEPS)
        verdict = value if function is None else _call_or_exhausted(m, function, (value,))
        if verdict is _EXHAUSTED:
            return
        if m.truth(verdict):
            yield value


@builtin("zip", LAZY)
def _zip(m: Machine, /, *iterables: Any, strict: Any = False) -> LazyIterator:
    parts = [iterator_of(m, value) for value in iterables]
    return lazily(m, "zip", _zipped(m, parts, m.truth(strict)))


def _zipped(m: Machine, parts: list[Any], strict: bool) -> Iterator[tuple[Any, ...]]:
    while parts:
        m.charge(8 + 2 * len(parts))
        values: list[Any] = []
        for part in parts:
            value = next(part, _EXHAUSTED)
            if value is _EXHAUSTED:
                if strict:
                    _check_all_end(parts, len(values))
                return
            values.append(value)
        yield tuple(values)


def _check_all_end(parts: list[Any], ended: int) -> None:
    """For `zip(strict=True)`: raise unless all iterators end together; number `ended` has ended."""
    if ended:
        raise ValueError(_uneven(ended, "shorter"))
    for index, part in enumerate(parts[1:], 1):
        if next(part, _EXHAUSTED) is not _EXHAUSTED:
            raise ValueError(_uneven(index, "longer"))


def _uneven(index: int, how: str) -> str:
    others = "argument 1" if index == 1 else f"arguments 1-{index}"
    return f"zip() argument {index + 1} is {how} than {others}"


@builtin("reversed", LAZY)
def _reversed(m: Machine, sequence: Any, /) -> Any:
    value = sequence
    if value.__class__ in INSTANCES:
        method = value.cls.find("__reversed__")
        if method is not UNSET and method is not None:
            return m.call(method, (value,), None)
        if value.cls.find("__getitem__") is not UNSET:
            return lazily(m, "reversed", _backwards(m, value, m.length(value)))
    if isinstance(value, list | range):
        m.allocate(64)
        return list.__reversed__(value) if isinstance(value, list) else reversed(value)
    if isinstance(value, str | tuple | bytes | dict | DICT_KEYS | DICT_VALUES | DICT_ITEMS):
        return lazily(m, "reversed", each(m, _host_reversed(value)))
    hook = value.hook("reversed") if isinstance(value, Class) else None
    if hook is not None:
        return hook(m, value)
    special = m.class_of(value).find("__reversed__")
    if special is not UNSET:
        return m.call(special, (value,), None)
    raise TypeError(f"'{m.class_of(value).name}' object is not reversible")


def _host_reversed(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        return dict.__reversed__(value)
    if isinstance(value, str | tuple):
        kind: Any = str if isinstance(value, str) else tuple
        return iter(kind.__getitem__(value, slice(None, None, -1)))
    iterator: Iterator[Any] = reversed(value)
    return iterator


def each(m: Machine, values: Iterator[Any]) -> Iterator[Any]:
    """Yield the values of one of Python's own iterators, at two steps each."""
    for value in values:
        m.charge(2)
        yield value


def _backwards(m: Machine, value: Any, index: int) -> Iterator[Any]:
    while index > 0:
        index -= 1
        m.charge(2)
        yield m.item(value, index)


def is_callable(m: Machine, value: Any) -> bool:
    """Return `callable(value)`."""
    kind = value.__class__
    if kind in INSTANCES:
        return value.cls.find("__call__") is not UNSET
    return kind is Function or kind in m.callables
