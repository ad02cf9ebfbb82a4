"""How far Python may go into containers within containers.

Hashing and comparing run in C, through every element of every element: lists that share their
parts keep that up for ever, and hashing a tuple nested deep enough overruns the C stack. So what
is hashed or compared is counted before, and the count costs steps.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nkic.base.text import grouped
from nkic.specialise.budget import Budget
from nkic.specialise.errors import KernelError

_CONTAINERS = (tuple, list, dict, set, frozenset)
_EMPTY: dict[Any, Any] = {}
VIEWS = (type(_EMPTY.keys()), type(_EMPTY.values()), type(_EMPTY.items()))
_OBJECT = 16
_FEW = 4  # elements
_LONG = 8192  # characters that are compared in a step
_FLAT = frozenset({int, float, bool, str, type(None)})


class Nesting:
    """The counts of one evaluation."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._limits = budget.limits

    def step(self) -> None:
        """An object of a kernel's class is compared or hashed: as much work as some steps."""
        self._budget.charge(_OBJECT)

    def key(self, value: Any) -> Any:
        """A value that is about to be hashed; of containers only tuples are hashed anew."""
        if not isinstance(value, tuple):
            return value
        if len(value) > _FEW:
            return self._counted(value)
        for part in value:
            if part.__class__ not in _FLAT:
                return self._counted(value)
        return value  # such as `nl.ds(0, 64)`: as quick to hash as to look at

    def keys(self, values: Iterable[Any]) -> list[Any]:
        """Values that are about to be hashed."""
        return [value if value.__class__ in _FLAT else self.key(value) for value in values]

    def compared(self, value: Any) -> Any:
        """A value that is about to be compared with one that may be as large."""
        if value.__class__ in _FLAT:
            if value.__class__ is str and len(value) > _LONG:
                self._budget.charge(len(value) // _LONG)
            return value
        if isinstance(value, VIEWS):
            self._budget.charge(len(value))
            return value
        return self._counted(value) if isinstance(value, _CONTAINERS) else value

    def hashed(self, value: Any) -> Any:
        """A value whose stable hash is computed, element by element."""
        if isinstance(value, tuple | frozenset):
            self._budget.charge(len(value))
            self._counted(value)
        return value

    def all_compared(self, values: Any) -> Any:
        """Values that are about to be compared with each other."""
        for value in values:
            if value.__class__ not in _FLAT:
                self.compared(value)
        return values

    def _counted(self, value: Any) -> Any:
        """Counts every container as often as it is reached, but looks into it only once."""
        inner = _inside(value)
        if not inner:  # an index, mostly
            self._check(len(value), 1)
            self._budget.copied(len(value))
            return value
        if not any(map(_inside, inner)):
            size = len(value) + sum(map(len, inner))
            self._check(size, 2)
            self._budget.copied(size + 8)
            return value
        return self._walked(value)

    def _walked(self, value: Any) -> Any:
        """The same for containers nested any number of levels deep."""
        sizes: dict[int, int] = {}
        depths: dict[int, int] = {}
        opened: set[int] = set()
        waiting = [value]
        while waiting:
            at = waiting[-1]
            inner = _inside(at)
            unknown = [part for part in inner if id(part) not in sizes]
            if not unknown or id(at) in opened:  # opened before: it holds itself
                sizes[id(at)] = len(at) + sum(sizes.get(id(part), 0) for part in inner)
                depths[id(at)] = 1 + max((depths.get(id(part), 0) for part in inner), default=0)
                waiting.pop()
            else:
                opened.add(id(at))
                waiting += unknown
        self._check(sizes[id(value)], depths[id(value)])
        self._budget.copied(sizes[id(value)] + 8 * len(opened))
        return value

    def _check(self, count: int, depth: int) -> None:
        if depth > self._limits.depth:
            text = f"containers are nested more than {grouped(self._limits.depth)} levels deep"
            raise KernelError("too-deep", text, help="keep the parts in one flat list")
        if count > self._limits.length:
            raise KernelError(
                "too-large",
                f"a value has more than {grouped(self._limits.length)} elements, counting those "
                "of the containers in it",
                help="compare or look up a part of it, such as a number or a name",
            )


def _inside(value: Any) -> list[Any]:
    """The containers that are elements of a container."""
    if isinstance(value, dict):
        parts: Iterable[Any] = [*value.keys(), *value.values()]
    elif isinstance(value, set):
        parts = set.__iter__(value)
    elif isinstance(value, frozenset):
        parts = frozenset.__iter__(value)
    else:
        parts = value
    return [p for p in parts if p.__class__ not in _FLAT and isinstance(p, _CONTAINERS)]
