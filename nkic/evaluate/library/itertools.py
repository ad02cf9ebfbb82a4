"""`itertools`, as iterators of the interpreter itself, which pay for each element they produce."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any

from nkic.evaluate.objects import UNSET, Builtin, Class, LazyIterator
from nkic.evaluate.operators import OPERATIONS
from nkic.evaluate.tables import OBJECT, builtin, class_function

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine

MODULE: dict[str, Any] = {}
_ELEMENT_STEPS = 6  # steps for producing an element


def _steps(name: str) -> Callable[[Callable[..., Iterator[Any]]], None]:
    """Register a generator function as a function of the module."""

    def add(make: Callable[..., Iterator[Any]]) -> None:
        @wraps(make)
        def call(m: Machine, /, *args: Any, **named: Any) -> LazyIterator:
            m.allocate(200)
            return LazyIterator(m, f"itertools.{name}", make(m, *args, **named))

        make.__qualname__ = name
        MODULE[name] = Builtin(name, call)

    return add


def _iterator(m: Machine, value: Any) -> Iterator[Any]:
    return iter(m.iterate(value))


# ---- chain --------------------------------------------------------------------------------------


def _chained(m: Machine, several: Any) -> Iterator[Any]:
    for values in several:
        m.charge(_ELEMENT_STEPS)
        for value in m.iterate(values):
            m.charge(_ELEMENT_STEPS)
            yield value


def _chain(m: Machine, cls: Class, /, *iterables: Any) -> LazyIterator:
    m.elements(len(iterables), "the arguments")
    return LazyIterator(m, "itertools.chain", _chained(m, iterables))


CHAIN = Class("chain", (OBJECT,), {}, make=_chain, module="itertools")
MODULE["chain"] = CHAIN


@class_function(CHAIN, "from_iterable")
def _from_iterable(m: Machine, iterable: Any, /) -> LazyIterator:
    return LazyIterator(m, "itertools.chain", _chained(m, _iterator(m, iterable)))


# ---- infinite iterators -------------------------------------------------------------------------


@_steps("count")
def _count(m: Machine, start: Any = 0, step: Any = 1) -> Iterator[Any]:
    for number in (start, step):
        if not isinstance(number, int | float) and m.class_of(number).find("__add__") is UNSET:
            raise TypeError("a number is required")
    return _counted(m, start, step)


def _counted(m: Machine, value: Any, step: Any) -> Iterator[Any]:
    while True:
        m.charge(_ELEMENT_STEPS)
        yield value
        value = OPERATIONS["+"](m, value, step)


@_steps("cycle")
def _cycle(m: Machine, iterable: Any, /) -> Iterator[Any]:
    return _cycled(m, _iterator(m, iterable))


def _cycled(m: Machine, values: Iterator[Any]) -> Iterator[Any]:
    saved: list[Any] = []
    for value in values:
        m.charge(_ELEMENT_STEPS + 2)
        m.allow_length(len(saved) + 1, "the list")
        saved.append(value)
        yield value
    while saved:
        for value in saved:
            m.charge(_ELEMENT_STEPS)
            yield value


@_steps("repeat")
def _repeat(m: Machine, object: Any, times: Any = UNSET) -> Iterator[Any]:
    count = None if times is UNSET else m.index(times)
    return _repeated(m, object, count)


def _repeated(m: Machine, value: Any, times: int | None) -> Iterator[Any]:
    while times is None or times > 0:
        m.charge(_ELEMENT_STEPS)
        yield value
        times = None if times is None else times - 1


# ---- iterators with a function ------------------------------------------------------------------


@_steps("accumulate")
def _accumulate(m: Machine, iterable: Any, func: Any = None, *, initial: Any = None) -> Any:
    return _accumulated(m, _iterator(m, iterable), func, initial)


def _accumulated(m: Machine, values: Iterator[Any], func: Any, total: Any) -> Iterator[Any]:
    if total is None:
        total = next(values, UNSET)
        if total is UNSET:
            return
    yield total
    for value in values:
        m.charge(_ELEMENT_STEPS)
        add = OPERATIONS["+"]
        total = add(m, total, value) if func is None else m.call(func, (total, value), None)
        yield total


@_steps("starmap")
def _starmap(m: Machine, function: Any, iterable: Any, /) -> Iterator[Any]:
    return _star_mapped(m, function, _iterator(m, iterable))


def _star_mapped(m: Machine, function: Any, values: Iterator[Any]) -> Iterator[Any]:
    for value in values:
        m.charge(_ELEMENT_STEPS)
        yield m.call(function, tuple(m.to_list(value)), None)


@_steps("takewhile")
def _takewhile(m: Machine, predicate: Any, iterable: Any, /) -> Iterator[Any]:
    return _taken_while(m, predicate, _iterator(m, iterable))


def _taken_while(m: Machine, predicate: Any, values: Iterator[Any]) -> Iterator[Any]:
    for value in values:
        m.charge(_ELEMENT_STEPS)
        if not m.truth(m.call(predicate, (value,), None)):
            return
        yield value


@_steps("dropwhile")
def _dropwhile(m: Machine, predicate: Any, iterable: Any, /) -> Iterator[Any]:
    return _dropped_while(m, predicate, _iterator(m, iterable))


def _dropped_while(m: Machine, predicate: Any, values: Iterator[Any]) -> Iterator[Any]:
    dropping = True
    for value in values:
        m.charge(_ELEMENT_STEPS)
        if dropping and m.truth(m.call(predicate, (value,), None)):
            continue
        dropping = False
        yield value


@_steps("filterfalse")
def _filterfalse(m: Machine, function: Any, iterable: Any, /) -> Iterator[Any]:
    return _filtered_false(m, function, _iterator(m, iterable))


def _filtered_false(m: Machine, function: Any, values: Iterator[Any]) -> Iterator[Any]:
    for value in values:
        m.charge(_ELEMENT_STEPS)
        verdict = value if function is None else m.call(function, (value,), None)
        if not m.truth(verdict):
            yield value


# ---- selections ---------------------------------------------------------------------------------


@_steps("islice")
def _islice(m: Machine, iterable: Any, /, *bounds: Any) -> Iterator[Any]:
    if not 1 <= len(bounds) <= 3:
        expected = "at least 2 arguments" if not bounds else "at most 4 arguments"
        raise TypeError(f"islice expected {expected}, got {1 + len(bounds)}")
    start, stop, step = 0, bounds[0], 1
    if len(bounds) > 1:
        start = _bound(
            m,
            bounds[0],
            0,
            "Indices for islice() must be None or an integer: 0 <= x <= sys.maxsize.",
        )
        stop = bounds[1]
    stop = _bound(
        m,
        stop,
        None,
        "Stop argument for islice() must be None or an integer: 0 <= x <= sys.maxsize.",
    )
    if len(bounds) > 2:
        step = _bound(m, bounds[2], 1, _STEP)
        if step == 0:
            raise ValueError(_STEP)
    return _sliced(m, _iterator(m, iterable), start, stop, step)


_STEP = "Step for islice() must be a positive integer or None."


def _bound(m: Machine, value: Any, default: Any, text: str) -> Any:
    if value is None:
        return default
    try:
        number = m.index(value)
    except TypeError:
        raise ValueError(text) from None
    if not 0 <= number < 1 << 63:
        raise ValueError(text)
    return number


def _sliced(m: Machine, values: Iterator[Any], start: int, stop: Any, step: int) -> Iterator[Any]:
    index, next_index = 0, start
    while stop is None or index < stop:
        if stop is not None and next_index >= stop:
            next_index = stop  # elements before the end are consumed nevertheless
        m.charge(_ELEMENT_STEPS)
        value = next(values, UNSET)
        if value is UNSET:
            return
        if index == next_index:
            yield value
            next_index += step
        index += 1


@_steps("compress")
def _compress(m: Machine, data: Any, selectors: Any) -> Iterator[Any]:
    return _compressed(m, _iterator(m, data), _iterator(m, selectors))


def _compressed(m: Machine, data: Iterator[Any], selectors: Iterator[Any]) -> Iterator[Any]:
    for value in data:
        m.charge(_ELEMENT_STEPS)
        chosen = next(selectors, UNSET)
        if chosen is UNSET:
            return
        if m.truth(chosen):
            yield value


@_steps("pairwise")
def _pairwise(m: Machine, iterable: Any, /) -> Iterator[Any]:
    return _in_pairs(m, _iterator(m, iterable))


def _in_pairs(m: Machine, values: Iterator[Any]) -> Iterator[Any]:
    before = next(values, UNSET)
    for value in values:
        m.charge(20)
        yield (before, value)
        before = value


@_steps("batched")
def _batched(m: Machine, iterable: Any, n: Any, *, strict: Any = False) -> Iterator[Any]:
    """Implement `batched`, which exists since Python 3.12; `strict` since 3.13."""
    size = m.index(n)
    if size < 1:
        raise ValueError("n must be at least one")
    return _in_batches(m, _iterator(m, iterable), size, m.truth(strict))


def _in_batches(m: Machine, values: Iterator[Any], size: int, strict: bool) -> Iterator[Any]:
    batch: list[Any] = []
    for value in values:
        m.charge(5)
        m.allow_length(len(batch) + 1, "the tuple")
        batch.append(value)
        if len(batch) == size:
            yield tuple(batch)
            batch = []
    if batch and strict:
        raise ValueError("batched(): incomplete batch")
    if batch:
        yield tuple(batch)


@_steps("zip_longest")
def _zip_longest(m: Machine, /, *iterables: Any, fillvalue: Any = None) -> Iterator[Any]:
    m.elements(len(iterables), "the arguments")
    return _zipped(m, [_iterator(m, iterable) for iterable in iterables], fillvalue)


def _zipped(m: Machine, waiting: list[Any], fill: Any) -> Iterator[Any]:
    while waiting:
        m.elements(len(waiting), "the tuple")
        row, alive = [], False
        for index, values in enumerate(waiting):
            value = UNSET if values is None else next(values, UNSET)
            if value is UNSET:
                waiting[index] = None
            alive = alive or value is not UNSET
            row.append(fill if value is UNSET else value)
        if not alive:
            return
        yield tuple(row)


# ---- tee and groupby ----------------------------------------------------------------------------


@builtin("tee", MODULE)
def _tee(m: Machine, iterable: Any, n: Any = 2, /) -> tuple[LazyIterator, ...]:
    count = m.index(n)
    if count < 0:
        raise ValueError("n must be >= 0")
    m.elements(count, "the tuple")
    m.allocate(200 * count)
    values = _iterator(m, iterable)
    head: list[Any] = []  # a linked list of [value, rest]; nodes that all readers passed are freed
    return tuple(
        [LazyIterator(m, "itertools._tee", _shared(m, values, head)) for _ in range(count)]
    )


def _shared(m: Machine, values: Iterator[Any], node: list[Any]) -> Iterator[Any]:
    while True:
        m.charge(_ELEMENT_STEPS)
        if not node:
            value = next(values, UNSET)
            if value is UNSET:
                return
            m.allocate(100)
            node += [value, []]
        value, node = node
        yield value


class _Groups:
    """The position of `groupby`; all its groups read from here."""

    def __init__(self, m: Machine, values: Iterator[Any], key: Any) -> None:
        self.m = m
        self.values = values
        self.key_function = key
        self.value: Any = UNSET
        self.key: Any = UNSET
        self.number = 0

    def read(self) -> bool:
        """Read one value; return False at the end."""
        self.m.charge(_ELEMENT_STEPS)
        self.value = next(self.values, UNSET)
        if self.value is UNSET:
            self.key = UNSET
            return False
        function = self.key_function
        self.key = self.value if function is None else self.m.call(function, (self.value,), None)
        return True

    def group(self, key: Any, number: int) -> Iterator[Any]:
        """Yield the values of one key until the next group is requested."""
        while number == self.number and self.key is not UNSET:
            if not self.m.equal(key, self.key):
                return
            value = self.value
            yield value
            if number == self.number:
                self.read()


@_steps("groupby")
def _groupby(m: Machine, iterable: Any, key: Any = None) -> Iterator[Any]:
    return _grouped(m, _Groups(m, _iterator(m, iterable), key))


def _grouped(m: Machine, groups: _Groups) -> Iterator[Any]:
    groups.read()
    while groups.key is not UNSET:
        key = groups.key
        groups.number += 1
        m.allocate(200)
        yield key, LazyIterator(m, "itertools._grouper", groups.group(key, groups.number))
        while groups.key is not UNSET and m.equal(key, groups.key):
            groups.read()


# ---- combinations -------------------------------------------------------------------------------


def _pool(m: Machine, iterable: Any) -> tuple[Any, ...]:
    return tuple(m.to_list(iterable))


def _size(m: Machine, r: Any) -> int:
    size = m.index(r)
    if size < 0:
        raise ValueError("r must be non-negative")
    m.elements(size, "the tuple")
    return size


def _charged(m: Machine, values: Iterator[Any], size: int) -> Iterator[Any]:
    for value in values:
        m.elements(size, "the tuple")
        yield value


@_steps("product")
def _product(m: Machine, /, *iterables: Any, repeat: Any = 1) -> Iterator[Any]:
    times = m.index(repeat)
    if times < 0:
        raise ValueError("repeat argument cannot be negative")
    m.elements(len(iterables) * times, "the tuple")
    pools = [_pool(m, iterable) for iterable in iterables] * times
    return _charged(m, itertools.product(*pools), len(pools))


@_steps("permutations")
def _permutations(m: Machine, iterable: Any, r: Any = None) -> Iterator[Any]:
    pool = _pool(m, iterable)
    if r is not None and not isinstance(r, int):
        raise TypeError("Expected int as r")
    size = len(pool) if r is None else _size(m, r)
    m.elements(len(pool) + size, "the tuple")
    return _charged(m, itertools.permutations(pool, size), size)


@_steps("combinations")
def _combinations(m: Machine, iterable: Any, r: Any) -> Iterator[Any]:
    pool, size = _pool(m, iterable), _size(m, r)
    return _charged(m, itertools.combinations(pool, size), size)


@_steps("combinations_with_replacement")
def _with_replacement(m: Machine, iterable: Any, r: Any) -> Iterator[Any]:
    pool, size = _pool(m, iterable), _size(m, r)
    return _charged(m, itertools.combinations_with_replacement(pool, size), size)
