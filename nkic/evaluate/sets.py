"""Sets whose iteration order does not depend on the process.

Python orders sets by hash, and the hashes of strings differ between processes; compiled output must
not. Sets of numbers keep Python's order.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nkic.evaluate.objects import INSTANCES

_NUMBERS = (int, float)


class KernelSet(set[Any]):
    """The `set` type of kernel code."""

    __name__ = "set"

    def __iter__(self) -> Iterator[Any]:
        return iter(_ordered(list(super().__iter__())))

    def pop(self) -> Any:
        """Remove and return the first element."""
        if not self:
            raise KeyError("pop from an empty set")
        value = next(iter(self))
        self.discard(value)
        return value

    def __repr__(self) -> str:
        return f"{{{', '.join(map(repr, self))}}}" if self else "set()"

    def copy(self) -> KernelSet:
        """Return a set of the same elements."""
        return KernelSet(self)

    def __and__(self, other: Any) -> Any:
        return _kept(super().__and__(other))

    def __or__(self, other: Any) -> Any:
        return _kept(super().__or__(other))

    def __sub__(self, other: Any) -> Any:
        return _kept(super().__sub__(other))

    def __xor__(self, other: Any) -> Any:
        return _kept(super().__xor__(other))

    def union(self, *others: Any) -> Any:
        """Return the elements of this set and of `others`."""
        return KernelSet(super().union(*others))

    def intersection(self, *others: Any) -> Any:
        """Return the elements of this set that are in all `others`."""
        return KernelSet(super().intersection(*others))

    def difference(self, *others: Any) -> Any:
        """Return the elements of this set that are in none of `others`."""
        return KernelSet(super().difference(*others))

    def symmetric_difference(self, other: Any) -> Any:
        """Return the elements of either set that are not in both."""
        return KernelSet(super().symmetric_difference(other))


class KernelFrozenSet(frozenset[Any]):
    """The `frozenset` type of kernel code."""

    __name__ = "frozenset"

    def __iter__(self) -> Iterator[Any]:
        return iter(_ordered(list(super().__iter__())))

    def __repr__(self) -> str:
        inner = f"{{{', '.join(map(repr, self))}}}" if self else ""
        return f"frozenset({inner})"


KernelSet.__name__ = KernelSet.__qualname__ = "set"
KernelFrozenSet.__name__ = KernelFrozenSet.__qualname__ = "frozenset"


def _kept(result: Any) -> Any:
    return KernelSet(result) if isinstance(result, set) else result


def _ordered(values: list[Any]) -> list[Any]:
    if all(isinstance(value, _NUMBERS) for value in values):
        return values
    return sorted(values, key=_place)


def _place(value: Any) -> tuple[str, str, int]:
    """Return the sort key of a value: class, text, and for instances the order of creation."""
    if value.__class__ in INSTANCES and not isinstance(value, str | tuple):
        return value.cls.name, "", value.serial
    return type(value).__name__, repr(value), 0
