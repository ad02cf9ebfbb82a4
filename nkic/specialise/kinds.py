"""Python's classes as kernel code holds them.

A class is a function too, and one that goes round the guards: `map(str, values)`, or
`type(int)("X", (list,), {})`. So what kernel code gets for `str`, `type(x)` and `x.__class__` is
a stand-in: it answers `isinstance` and `==` as the class does, has the class's attributes, and
calls the guarded function. Classes that kernel code defines are themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nkic.specialise.errors import KernelError


class Kind(type):
    """The class of stand-ins. Each has the class in `_real` and what calls it in `_make`."""

    _real: type
    _make: Callable[..., Any]

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        return cls._make(*args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, cls._real)

    def __subclasscheck__(cls, subclass: Any) -> bool:
        return issubclass(real(subclass), cls._real)

    def __eq__(cls, other: object) -> bool:
        return cls._real is real(other)

    def __hash__(cls) -> int:
        return hash(cls._real)

    def __getattr__(cls, name: str) -> Any:
        return getattr(cls._real, name)

    def __getitem__(cls, parameters: Any) -> Any:
        return cls  # `list[int]`, on module level

    __iter__ = None  # or Python would ask for the items 0, 1, 2 … for ever

    def __repr__(cls) -> str:
        return repr(cls._real)


def real(value: Any) -> Any:
    """The class behind a stand-in; anything else as it is."""
    return value._real if type(value) is Kind else value


class Kinds:
    """The stand-ins of one evaluation. `calls` are the guarded functions by class."""

    def __init__(self, calls: Mapping[type, Callable[..., Any]]) -> None:
        self._calls = calls
        self._made: dict[type, Kind] = {}

    def of(self, found: Any) -> Any:
        """What kernel code gets for a class."""
        if type(found) is Kind or not isinstance(found, type) or _is_open(found):
            return found
        if found not in self._made:
            self._made[found] = self._kind(found)
        return self._made[found]

    def _kind(self, found: type) -> Kind:
        def refuse(*_: Any, **__: Any) -> Any:
            raise KernelError(
                "wrong-type",
                f"an object of the class `{found.__name__}` is not made by calling its class",
                help="use the function of `nl`, `nisa` or Python that makes such a value",
            )

        make = staticmethod(self._calls.get(found, refuse))
        body = {"_real": found, "_make": make, "__qualname__": found.__qualname__}
        return Kind(found.__name__, (), body)


def _is_open(found: type) -> bool:
    """Kernel code may have the class itself: it made it, or it makes what is harmless."""
    return "__nkic__" in found.__dict__ or found in _HARMLESS or issubclass(found, Exception)


_HARMLESS = frozenset({float, bool, object})
