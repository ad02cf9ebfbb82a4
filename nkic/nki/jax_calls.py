"""JAX: conversion of its arrays, and kernels inside functions that it traces: `kernel(a, b)` and
`jax_neuronx.nki_call`.

The kernel is compiled when JAX traces the call, so errors and the shapes of results are known then;
in the program it is a callback, which appears as a custom call in the lowered HLO. `jax.vmap` runs
the kernel once for every element of the batch.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from nkic import api
from nkic.api.arrays import Array, numpy_type
from nkic.api.errors import CompileError, raising, refuse
from nkic.nki.arrays import refuse_written
from nkic.nki.jit import Kernel, LaunchOptions, kernel_of

cast = "`.astype(jnp.{})`"
update = None  # arrays of JAX are immutable


def array_of(value: Any) -> Array | None:
    """Return the read-only array of a JAX array; None for other values."""
    if not isinstance(value, jax.Array):
        return None
    if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        return None
    return np.asarray(value)


def guarded(values: Any, arguments: Sequence[Any], kernel: str) -> Any:
    """Return the results unchanged: JAX differentiates only what it traces."""
    return values


def back(array: Array, like: Any) -> Any:
    return jnp.asarray(array)


Rebuild = Callable[[Sequence[Any]], tuple[tuple[Any, ...], dict[str, Any]]]


def traced(kernel: Kernel, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    operands, rebuild = _operands(args, dict(kwargs))
    args_like, kwargs_like = rebuild([_like(operand) for operand in operands])
    artifact = kernel.prepare(*args_like, **kwargs_like).artifact
    _refuse_updates(artifact, ())
    shapes = [_shape(p.shape, numpy_type(p.dtype)) for p in artifact.signature.returned]

    def run(*values: Any) -> Any:
        arguments, named = rebuild([np.asarray(operand) for operand in values])
        return tuple(_arrays(kernel.run(arguments, named).values))

    results = _callback(kernel, run, tuple(shapes), operands)
    return _formed(artifact.returned, results)


def nki_call(func: Any, *args: Any, out_shape: Any, grid: Any = None, **kwargs: Any) -> Any:
    """Call a kernel in a JAX program.

    `out_shape` is a `jax.ShapeDtypeStruct` or a sequence of them; the kernel returns its results,
    or writes them to its last parameters. Raises `CompileError` if the kernel gives other results.
    """
    kernel = kernel_of(func, LaunchOptions(spmd=True))
    kernel = kernel[grid] if grid not in (None, ()) else kernel
    with raising(CompileError):
        described = tuple(out_shape) if isinstance(out_shape, list | tuple) else (out_shape,)
        shapes = tuple(_shape(shape.shape, np.dtype(shape.dtype)) for shape in described)
        names = _written_names(kernel, args, kwargs, len(described))
        results = _called(kernel, args, kwargs, shapes, names)
    return list(results) if isinstance(out_shape, list | tuple) else results[0]


def _called(
    kernel: Kernel,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    shapes: tuple[Any, ...],
    names: tuple[str, ...],
) -> Sequence[Any]:
    operands, rebuild = _operands(args, dict(kwargs))

    def filled_arguments(values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        positional, named = rebuild(values)
        outputs = (np.zeros(shape.shape, shape.dtype) for shape in shapes[: len(names)])
        return (*positional, *outputs), named

    args_like, kwargs_like = filled_arguments([_like(operand) for operand in operands])
    artifact = kernel.prepare(*args_like, **kwargs_like).artifact
    _refuse_updates(artifact, names)
    _check(artifact, shapes, names)

    def run(*values: Any) -> tuple[Array, ...]:
        positional, named = filled_arguments([np.asarray(operand) for operand in values])
        called = kernel.run(positional, named)
        return tuple(called.updated[n] for n in names) if names else tuple(_arrays(called.values))

    return _callback(kernel, run, shapes, operands)


def _written_names(
    kernel: Kernel, args: tuple[Any, ...], kwargs: Mapping[str, Any], count: int
) -> tuple[str, ...]:
    """Return the last parameters if the kernel takes its outputs as such; nothing if it returns
    them.
    """
    parameters = inspect.signature(kernel.func).parameters.values()
    required = [p.name for p in parameters if p.default is p.empty and p.name not in kwargs]
    missing = required[len(args) :]
    if missing and len(missing) != count:
        refuse(
            f"nki_call: `{kernel.func.__name__}` has {len(missing)} parameters for its outputs, "
            f"and out_shape describes {count}",
            "give one shape for each tensor that the kernel writes or returns",
        )
    return tuple(missing)


def _check(artifact: api.Artifact, shapes: tuple[Any, ...], names: tuple[str, ...]) -> None:
    signature = artifact.signature
    outputs = {p.name: p for p in signature.outputs}
    parameters = [outputs[n] for n in names if n in outputs] if names else signature.returned
    returned = [(tuple(p.shape), numpy_type(p.dtype).name) for p in parameters]
    wanted = [(shape.shape, shape.dtype.name) for shape in shapes]
    if returned != wanted:
        refuse(
            f"nki_call: the kernel gives {_shown(returned)}, out_shape is {_shown(wanted)}",
            "describe the tensors that the kernel writes or returns",
        )


def _shown(types: Sequence[tuple[Any, str]]) -> str:
    return ", ".join(f"{name}{list(shape)}" for shape, name in types) or "nothing"


def _refuse_updates(artifact: api.Artifact, allowed: Sequence[str]) -> None:
    for name, returned in artifact.signature.updates.items():
        if name not in allowed and not returned:
            refuse_written(name)


def _callback(
    kernel: Kernel, run: Callable[..., Any], shapes: tuple[Any, ...], operands: list[Any]
) -> Sequence[Any]:
    with jax.named_scope(f"nki_call.{kernel.func.__name__}"):
        results: Sequence[Any] = jax.pure_callback(run, shapes, *operands, vmap_method="sequential")
    return results


def _operands(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Rebuild]:
    """Return the arrays of a call, and a function that puts others in their places."""
    leaves, form = jax.tree_util.tree_flatten((args, kwargs))
    indices = [n for n, leaf in enumerate(leaves) if isinstance(leaf, jax.Array | np.ndarray)]

    def rebuild(values: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        filled = list(leaves)
        for index, value in zip(indices, values, strict=True):
            filled[index] = value
        call: tuple[tuple[Any, ...], dict[str, Any]] = jax.tree_util.tree_unflatten(form, filled)
        return call

    return [leaves[index] for index in indices], rebuild


def _like(operand: Any) -> Array:
    """Return an array of the operand's type that stores only one element."""
    return np.broadcast_to(np.zeros((), operand.dtype), operand.shape)


def _shape(shape: Sequence[int], dtype: np.dtype[Any]) -> Any:
    make: Any = jax.ShapeDtypeStruct  # JAX does not annotate it
    return make(tuple(shape), dtype)


def _arrays(values: Any) -> Iterator[Array]:
    if isinstance(values, tuple):
        for value in values:
            yield from _arrays(value)
    elif values is not None:
        yield values


def _formed(form: Any, results: Sequence[Any]) -> Any:
    """Return the results in the form of the kernel's return value."""
    if form is None:
        return None
    return (
        results[form] if isinstance(form, int) else tuple(_formed(inner, results) for inner in form)
    )
