"""Sets whose iteration order does not depend on the process.

Python orders sets by hash, and the hashes of strings differ between processes; compiled output must
not. Sets of numbers keep Python's order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from nkic.evaluate.objects import INSTANCES, active

if TYPE_CHECKING:
    from nkic.evaluate.machine import Machine

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
