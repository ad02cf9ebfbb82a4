"""Host-side values that a traced kernel may hold, and their conversion.

Host code that imports `nki.language` gets objects that are meaningful to frameworks as well, and
NumPy has its own scalars. Where the API expects one of its own values, these stand for one.
"""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from nkic.base.device import KernelError

# ---- What kernels see of the API's values --------------------------------------------------------

Kind = TypeVar("Kind", bound=type)


class Surface(NamedTuple):
    """The attributes that kernels may access. Whether its values can be called; whether kernels
    may call the class itself, or pass it to isinstance.
    """

    names: tuple[str, ...]
    has_calls: bool
    is_called: bool


SURFACES: dict[type, Surface] = {}


def surface(
    names: str = "", *, public: bool = False, called: bool = False
) -> Callable[[Kind], Kind]:
    """Decorate a class whose values kernels hold with the attributes that exist for them.

    With `public`, these are its public ones besides. Python's own code sees all attributes.
    """

    def declare(kind: Kind) -> Kind:
        own = [vars(base) | vars(base).get("__annotations__", {}) for base in kind.__mro__[:-1]]
        also = [name for part in own for name in part if public and not name.startswith("_")]
        shown = tuple(dict.fromkeys([*names.split(), *also]))
        SURFACES[kind] = Surface(shown, any("__call__" in part for part in own), called)
        return kind

    return declare


# ---- Formatting of kernels' values for messages -------------------------------------------------


class _Writer(reprlib.Repr):
    """Python's writer of abridged texts, which writes the bounds of slices in full."""

    def repr_slice(self, value: slice, level: int) -> str:
        parts = (value.start, value.stop, value.step)
        return f"slice({', '.join(self.repr1(part, level - 1) for part in parts)})"


_WRITER = _Writer()
_WRITER.maxlevel, _WRITER.maxlist, _WRITER.maxtuple, _WRITER.maxdict = 4, 8, 8, 8
_WRITER.maxstring = _WRITER.maxother = _WRITER.maxlong = 200


def brief(value: Any, length: int = 60) -> str:
    """Format a value briefly, even a list that is cyclic or has shared parts."""
    if isinstance(value, list | tuple) and len(value) > 8:
        return f"a {type(value).__name__} of {len(value)}"
    try:
        text = " ".join(_WRITER.repr(value).split())
    except Exception:  # a kernel's own __repr__ may raise
        return f"a {type(value).__name__}"
    return text if len(text) <= length else f"{text[:length]}…"


def plain(value: Any) -> Any:
    """Return the API value that `value` stands for, or `value` itself.

    Classes of such host-side values have a method `__nki__`. A NumPy scalar becomes a Python
    number.
    """
    kind = type(value)
    convert = getattr(kind, "__nki__", None)
    if convert is not None:
        return convert(value)
    if kind.__module__ == "numpy" and hasattr(kind, "item") and value.ndim == 0:
        return value.item()
    return value


def whole_number(value: Any, noun: str) -> int:
    """Return a number of a kernel as an int. Raises `KernelError`; `noun` names the number."""
    number = plain(value)
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if not isinstance(number, int):
        raise KernelError("argument-kind", f"{noun} must be an int, not {brief(value)}")
    return int(number)


def whole_numbers(values: Any, noun: str) -> tuple[int, ...]:
    """Return the numbers of a tuple or list as ints, or one number as a tuple of one."""
    listed = values if isinstance(values, tuple | list) else (values,)
    return tuple(whole_number(value, f"each number of {noun}") for value in listed)
