"""Conversion of PyTorch's and JAX's arrays to NumPy's, and of results back to the caller's kind.

Neither framework is imported here; only a value of one causes its converter to be loaded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, NoReturn, Protocol

import numpy as np

from nkic import api
from nkic.api.arrays import Array, adapters
from nkic.api.errors import CompileError, RunError, raising, refuse

_CONVERTERS = {"torch": "nkic.nki.torch_ops", "jaxlib": "nkic.nki.jax_calls"}
_CONVERTERS["jax"] = _CONVERTERS["jaxlib"]
_lock = threading.Lock()


class Converter(Protocol):
    """A module that converts the arrays of one framework."""

    def array_of(self, value: Any) -> Array | None:
        """Return the NumPy array of a value, sharing its memory if possible."""

    def back(self, array: Array, like: Any) -> Any:
        """Return an array of the framework, on the device of `like`."""

    @property
    def cast(self) -> str:
        """The expression that converts an array to the type whose name replaces {}."""

    def guarded(self, values: Any, arguments: Sequence[Any], kernel: str) -> Any:
        """Return results of `kernel` that raise an error if a gradient through them is requested.

        This applies only if one of the `arguments` requires gradients.
        """

    @property
    def update(self) -> Callable[[Any, Array], None] | None:
        """A function that writes to a value, or raises `UsageFailed`; None if arrays are
        immutable.
        """


class Borrowed(np.ndarray[Any, Any]):
    """An array that belongs to a framework: `owner` is its value, `cast` the conversion
    expression.
    """

    owner: Any = None
    cast = ""


def converter(value: Any) -> Converter | None:
    for kind in type(value).__mro__:
        name = _CONVERTERS.get(kind.__module__.partition(".")[0])
        if name is not None:
            module: Any = import_module(name)
            return module  # type: ignore[no-any-return]
    return None


def borrow(value: Any) -> Array | None:
    framework = converter(value)
    array = framework.array_of(value) if framework is not None else None
    if framework is None or array is None:
        return None
    borrowed = array.view(Borrowed)
    borrowed.owner, borrowed.cast = value, framework.cast
    return borrowed


@contextmanager
def adapting() -> Iterator[None]:
    """Install the adapter, permanently."""
    with _lock:
        if borrow not in adapters:
            adapters.append(borrow)
    yield


def settle(called: api.Called) -> Any:
    """Write back what the kernel updated, and return its values in the caller's kind.

    Immutable arrays may stay unchanged if the kernel also returns what it wrote.
    """
    with raising(RunError):
        for name, returned in called.artifact.signature.updates.items():
            _write(name, called.inputs[name], called.updated[name], returned)
    owners = [getattr(array, "owner", None) for array in called.inputs.values()]
    like = next((owner for owner in owners if owner is not None), None)
    framework = converter(like) if like is not None else None
    values = values_like(called.values, like)
    name = called.artifact.executable.name
    return framework.guarded(values, owners, name) if framework is not None else values


def _write(name: str, target: Array, array: Array, returned: bool) -> None:
    owner = getattr(target, "owner", None)
    framework = converter(owner) if owner is not None else None
    if framework is not None:
        if framework.update is not None:
            framework.update(owner, array)
        elif not returned:
            refuse_written(name)
    elif target.flags.writeable:
        np.copyto(target, array)
    else:
        refuse(f"the kernel writes `{name}`, which is a read-only array", "pass a copy of it")


def refuse_written(name: str) -> NoReturn:
    """Reject a write to a JAX array, which is immutable."""
    refuse(
        f"the kernel writes its argument `{name}`, but JAX arrays are immutable",
        f"return `{name}` from the kernel: the result is a new array; or leave the argument out "
        "and call the kernel by nki_call with its out_shape",
    )


def values_like(values: Any, like: Any) -> Any:
    framework = converter(like) if like is not None else None
    if framework is None or values is None:
        return values
    if isinstance(values, tuple):
        return tuple(values_like(value, like) for value in values)
    return framework.back(values, like)


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    else:
        yield value


def is_traced(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether an argument is a JAX tracer: the call is inside `jax.jit`, `grad` or `vmap`."""
    leaves = _leaves([*args, *kwargs.values()])
    kinds = (kind for leaf in leaves for kind in type(leaf).__mro__ if kind.__name__ == "Tracer")
    return any(kind.__module__.partition(".")[0] in ("jax", "jaxlib") for kind in kinds)


def in_jax(kernel: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Make the call a part of the function that JAX traces."""
    from nkic.nki.jax_calls import traced

    with raising(CompileError):
        return traced(kernel, args, kwargs)
