"""Sets whose order does not depend on the process.

Python orders sets by hash, and hashes of text differ from one process to the next; what a
kernel compiles to must not. Sets of numbers keep Python's order.
"""

from __future__ import annotations

from binascii import crc32
from collections.abc import Iterator
from enum import Enum
from math import isnan
from typing import Any

_NUMBERS = (int, float)


class KernelSet(set[Any]):
    """The `set` of kernel code."""

    __name__ = "set"

    def __iter__(self) -> Iterator[Any]:
        return iter(_ordered(list(super().__iter__())))

    def pop(self) -> Any:
        """Removes and returns the first element."""
        if not self:
            raise KeyError("pop from an empty set")
        value = next(iter(self))
        self.discard(value)
        return value

    def __repr__(self) -> str:
        return f"{{{', '.join(map(repr, self))}}}" if self else "set()"

    def copy(self) -> KernelSet:
        """A set of the same elements."""
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
        """Elements of this set and of `others`."""
        return KernelSet(super().union(*others))

    def intersection(self, *others: Any) -> Any:
        """Elements of this set that are in all `others`."""
        return KernelSet(super().intersection(*others))

    def difference(self, *others: Any) -> Any:
        """Elements of this set that are in none of `others`."""
        return KernelSet(super().difference(*others))

    def symmetric_difference(self, other: Any) -> Any:
        """Elements of either set that are not in both."""
        return KernelSet(super().symmetric_difference(other))


class KernelFrozenSet(frozenset[Any]):
    """The `frozenset` of kernel code."""

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
    return sorted(values, key=lambda value: (type(value).__name__, repr(value)))


def stable_hash(value: Any) -> int:
    """`hash`, the same in every process: equal values have equal hashes."""
    if isinstance(value, str):
        return crc32(value.encode("utf-8", "surrogatepass"))
    if isinstance(value, bytes):
        return crc32(value)
    if isinstance(value, tuple):
        return hash(tuple([stable_hash(part) for part in value]))
    if isinstance(value, frozenset):
        return hash(frozenset([stable_hash(part) for part in frozenset.__iter__(value)]))
    if isinstance(value, Enum) and not isinstance(value, int):
        return crc32(value.name.encode())
    if value is None or (isinstance(value, float) and isnan(value)):
        return 0  # Python hashes NaN by its address
    kind: Any = value if isinstance(value, type) else type(value)
    if kind is value or kind.__hash__ is object.__hash__:
        return crc32(kind.__qualname__.encode())
    return hash(value)
