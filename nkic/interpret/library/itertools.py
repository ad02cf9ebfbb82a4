"""`itertools`, as iterators of the interpreter itself, which pay for each element they produce."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

from nkic.interpret.objects import UNSET, Builtin, Class, LazyIterator
from nkic.interpret.operators import OPERATIONS
from nkic.interpret.tables import OBJECT, builtin, class_function

if TYPE_CHECKING:
    from nkic.interpret.machine import Machine

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


def _paid(m: Machine, iterable: Any, steps: int = _ELEMENT_STEPS) -> Iterator[Any]:
    """Return an iterator over the iterable that charges `steps` for each value."""
    return _paying(m, _iterator(m, iterable), steps)


def _paying(m: Machine, values: Iterator[Any], steps: int) -> Iterator[Any]:
    for value in values:
        m.charge(steps)
        yield value


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


_steps("cycle")(lambda m, iterable, /: _cycled(m, _iterator(m, iterable)))


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
    add = partial(OPERATIONS["+"], m)
    combine = add if func is None else _calling(m, func)
    return itertools.accumulate(_paid(m, iterable), combine, initial=initial)


def _calling(m: Machine, function: Any) -> Callable[..., Any]:
    return lambda *args: m.call(function, args, None)


def _test(m: Machine, predicate: Any) -> Callable[[Any], bool]:
    return lambda value: m.truth(m.call(predicate, (value,), None))


@_steps("starmap")
def _starmap(m: Machine, function: Any, iterable: Any, /) -> Iterator[Any]:
    return itertools.starmap(_calling(m, function), map(m.to_list, _paid(m, iterable)))


@_steps("takewhile")
def _takewhile(m: Machine, predicate: Any, iterable: Any, /) -> Iterator[Any]:
    return itertools.takewhile(_test(m, predicate), _paid(m, iterable))


@_steps("dropwhile")
def _dropwhile(m: Machine, predicate: Any, iterable: Any, /) -> Iterator[Any]:
    return itertools.dropwhile(_test(m, predicate), _paid(m, iterable))


@_steps("filterfalse")
def _filterfalse(m: Machine, function: Any, iterable: Any, /) -> Iterator[Any]:
    test = m.truth if function is None else _test(m, function)
    return itertools.filterfalse(test, _paid(m, iterable))


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
    return itertools.islice(_paid(m, iterable), start, stop, step)


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


@_steps("compress")
def _compress(m: Machine, data: Any, selectors: Any) -> Iterator[Any]:
    return itertools.compress(_paid(m, data), map(m.truth, _iterator(m, selectors)))


_steps("pairwise")(lambda m, iterable, /: itertools.pairwise(_paid(m, iterable, 20)))


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
    iterators = [_iterator(m, iterable) for iterable in iterables]
    rows = itertools.zip_longest(*iterators, fillvalue=fillvalue)
    return _charged(m, rows, len(iterators))


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
