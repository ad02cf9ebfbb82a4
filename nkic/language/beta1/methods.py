"""Methods of tiles that record instructions: operators, assignment, and conversion."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NoReturn

from nkic.base.kernel_errors import KernelError, Missing
from nkic.base.suggest import did_you_mean
from nkic.language.beta1.access import AtRunTime
from nkic.language.beta1.calls import fitting
from nkic.language.beta1.functions import binary, broadcast_to, unary, update
from nkic.language.beta1.indices import Index, constant
from nkic.language.beta1.moving import assign, static_cast
from nkic.language.beta1.tiles import Blocks, Tile
from nkic.language.hosted import plain
from nkic.language.tensors.tensor import ARITHMETIC, COMPARISONS, UNARY, NkiTensor

# ---- operators -----------------------------------------------------------------------------------

_IN_PLACE = {python: name for python, name in ARITHMETIC.items() if python != "matmul"}


def _taken(value: Any) -> bool:
    return isinstance(value, NkiTensor | int | float)


def _operator(name: str, swapped: bool = False) -> Callable[[Tile, Any], Any]:
    def apply(self: Tile, other: Any) -> Any:
        if isinstance(other, Index | AtRunTime):
            return _offset(self, name, other)
        other = other if _taken(other) else plain(other)
        if not _taken(other):
            return NotImplemented
        first, second = (other, self) if swapped else (self, other)
        return binary(name, first, second)

    return apply


def _offset(tile: Tile, name: str, index: Any) -> Any:
    """Return a run-time index: a tile of indices plus an expression."""
    if isinstance(index, AtRunTime) or name not in ("add", "subtract", "multiply"):
        text = f"{name} of a tile and an index expression is not an index"
        raise KernelError("bad-index", text, help="make a tile from the expression with nisa.iota")
    factor = constant(index)
    if name == "multiply" and factor is not None:
        return binary(name, tile, factor)
    if name != "add":
        raise KernelError("bad-index", "a run-time index is a tile plus an expression")
    return AtRunTime(tile._access, index + Index(0, ()))


def _in_place(name: str) -> Callable[[Tile, Any], Any]:
    def apply(self: Tile, other: Any) -> Any:
        other = other if _taken(other) else plain(other)
        return update(name, self, other) if _taken(other) else NotImplemented

    return apply


def _set_item(self: Tile | Blocks, key: Any, value: Any) -> None:
    target = self[key]
    if isinstance(target, Blocks):
        raise target._no_tile()
    assign(target, value)


def _broadcast_to(self: Tile, shape: Any) -> Tile:
    """Broadcast to a shape."""
    return broadcast_to(self, shape=shape)


def _no_attribute(functions: Collection[str]) -> Callable[[Tile, str], NoReturn]:
    """Return `Tile.__getattr__`; `functions` are those of nki.language."""

    def missing(self: Tile, name: str) -> NoReturn:
        meant = {"T": "transpose", "pow": "power", "clip": "minimum"}.get(name, name)
        advice = f"write nl.{meant}(t, …), which is a function" if meant in functions else ""
        text = f"a tensor has no attribute `{name}`"
        advise = advice or (lambda: did_you_mean(name, _PUBLIC))
        raise Missing("unknown-attribute", text, name, advise)

    return missing


_PUBLIC = ("shape", "dtype", "buffer", "ndim", "astype", "view", "reshape", "broadcast_to")


def _astype(self: Tile, dtype: Any) -> Any:
    """Return a copy with another dtype."""
    return static_cast(self, dtype)


def install(functions: Collection[str]) -> None:
    """Add the methods to tiles; `functions` are the names of nki.language."""
    methods = {
        "__setitem__": _set_item,
        "__getattr__": _no_attribute(functions),
        "broadcast_to": fitting("t.broadcast_to", _broadcast_to),
        "astype": fitting("t.astype", _astype),
    }
    for name, method in methods.items():
        setattr(Tile, name, method)
    setattr(Blocks, "__setitem__", _set_item)  # noqa: B010  (the class declares none)
    for python, name in {**_IN_PLACE, **COMPARISONS}.items():
        setattr(Tile, f"__{python}__", _operator(name))
        setattr(Tile, f"__r{python}__", _operator(name, swapped=True))
    for python, name in _IN_PLACE.items():
        setattr(Tile, f"__i{python}__", _in_place(name))
    for python, name in UNARY.items():
        setattr(Tile, f"__{python}__", lambda self, name=name: unary(name, self))
