"""Operators and functions in Beta 1's spellings: `nl.add`, `np.add`, `np.max`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from functools import wraps
from typing import Any, NoReturn

from nkic.base.device import KernelError, Missing
from nkic.base.diagnostics import did_you_mean
from nkic.language import versions
from nkic.language.beta1.access import AtRunTime
from nkic.language.beta1.functions import binary, broadcast_to, unary, update
from nkic.language.beta1.indices import Index, constant
from nkic.language.beta1.moving import assign, static_cast
from nkic.language.beta1.tiles import Blocks, Tile
from nkic.language.enums import OPERATORS, Operator, binds
from nkic.language.hosted import brief, plain, surface
from nkic.language.tensor import ARITHMETIC, COMPARISONS, UNARY, NkiTensor
from nkic.machine.operators import ACTIVATIONS, ALU

# ---- Errors for calls that do not fit a function of Beta 1 --------------------------------------

_RETURNS = (
    "an instruction of Beta 1 returns its result: leave `dst` out, and assign what it returns"
)


def fitting(called: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `function`, known to kernels as `called`, to explain arguments that do not fit."""

    @wraps(function)
    def call(*args: Any, **more: Any) -> Any:
        try:
            return function(*args, **more)
        except TypeError:
            check(called, function, args, more)
            raise

    return call


def check(
    called: str, function: Callable[..., Any], args: tuple[Any, ...], more: Mapping[str, Any]
) -> None:
    signature = inspect.signature(function)
    unknown = [name for name in more if name not in signature.parameters]
    if unknown:
        raise _unknown(called, signature, unknown[0])
    try:
        signature.bind(*args, **more)
    except TypeError as error:
        text = f"{called}: {error}".replace("'", "`")
        with_dst = called.startswith("nisa.") and binds(function, args[1:], more)
        help = f"{_RETURNS}; " if with_dst else ""
        raise KernelError("wrong-call", text, help=help + _usage(called, signature)) from None


def _unknown(called: str, signature: inspect.Signature, name: str) -> KernelError:
    text = f"{called}: there is no parameter `{name}`"
    near = did_you_mean(name, signature.parameters) or _usage(called, signature)
    help = _RETURNS if name == "dst" else near
    return KernelError("wrong-call", text, help=help, argument=name)


def _usage(called: str, signature: inspect.Signature) -> str:
    return f"the call is {called}({', '.join(map(_word, signature.parameters.values()))})"


def _word(parameter: inspect.Parameter) -> str:
    if parameter.kind is parameter.VAR_POSITIONAL:
        return f"*{parameter.name}"
    return parameter.name if parameter.default is parameter.empty else f"{parameter.name}=…"


# --------------------------------------------------------------------------------------------------

# Functions composed of several instructions, which no instruction has as an operator.
_COMPOSED = frozenset({"divide", "mod", "fmod", "negative"})


@surface("name")
class Function(Operator):
    """A function of `nki.language`, which is also accepted as `op=`."""

    __slots__ = ("_call",)

    def __init__(self, name: str, call: Callable[..., Any]) -> None:
        super().__init__(name)
        self._call = call

    def __call__(self, *args: Any, **more: Any) -> Any:
        try:
            return self._call(*args, **more)
        except TypeError:
            check(f"nl.{self.name}", self._call, args, more)
            raise


def operator_name(value: Any, parameter: str = "op") -> str:
    """Return the name of an operator in the instruction table, or of a composed function."""
    function = plain(value)
    name = getattr(function, "name", None) or getattr(function, "__name__", None)
    if not isinstance(name, str) or isinstance(value, int | float | bool):
        raise KernelError(
            "argument-kind",
            f"`{parameter}` is {brief(value)}, but must be an operator",
            help="pass the operator itself, uncalled, such as np.add or nl.add",
            argument=parameter,
        )
    name = versions.OPERATORS.get(name, name)
    if name in ALU or name in ACTIVATIONS or name in _COMPOSED:
        return name
    text = f"`{parameter}`: no engine supports the operator `{name}`"
    near = did_you_mean(name, [*ALU, *ACTIVATIONS])
    raise KernelError("operator-not-supported", text, help=near, argument=parameter)


def operator(value: Any, parameter: str = "op") -> Operator | None:
    if value is None:
        return None
    name = operator_name(value, parameter)
    if name in _COMPOSED:
        text = f"`{parameter}`: no engine supports `{name}` as an operator"
        help = f"call nl.{name}, which is made of several instructions"
        raise KernelError("operator-not-supported", text, help=help, argument=parameter)
    return OPERATORS[name]


# ---- Methods of tiles that record instructions: operators, assignment, and conversion -----------

# ---- operators -----------------------------------------------------------------------------------

_IN_PLACE = {python: name for python, name in ARITHMETIC.items() if python != "matmul"}


def _taken(value: Any) -> bool:
    return isinstance(value, NkiTensor | int | float)


def _operator(name: str, swapped: bool = False) -> Callable[[Tile, Any], Any]:
    def apply(self: Tile, other: Any) -> Any:
        if isinstance(other, Index | AtRunTime):
            return _offset(self, name, other)
        if not _taken(plain(other)):
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
        return binary(name, tile, factor, tile.dtype)
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
