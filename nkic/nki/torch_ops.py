"""PyTorch: conversion of its tensors, and kernels as operators, so that `torch.compile` traces
through them.

`custom_op` registers a kernel with `torch.library`: for tensors without data (fake tensors), the
results have the shapes that the kernel compiles to; `backward` makes it differentiable.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from nkic.api.arrays import Array, numpy_type
from nkic.api.errors import CompileError, RunError, raising, refuse
from nkic.nki.jit import Kernel, kernel_of

# Types that NumPy lacks are passed as integers with the same bits.
cast = "`.to(torch.{})`"
_BITS = {1: torch.uint8, 2: torch.int16}
_FOREIGN = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu")


def _foreign(name: str) -> np.dtype[Any]:
    try:
        import ml_dtypes
    except ImportError:
        refuse(f"a tensor of torch.{name} needs the package ml_dtypes", "pip install ml_dtypes")
    dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return dtype


def numpy_dtype(dtype: torch.dtype) -> np.dtype[Any]:
    name = str(dtype).removeprefix("torch.")
    return _foreign(name) if name in _FOREIGN else np.dtype(name)


def array_of(value: Any) -> Array | None:
    """Return the array of a tensor, sharing memory if it is on the CPU; None for other values."""
    if not isinstance(value, torch.Tensor):
        return None
    tensor = value.detach().cpu()
    name = str(tensor.dtype).removeprefix("torch.")
    if name not in _FOREIGN:
        array: Array = tensor.numpy()
        return array
    bits: Array = tensor.contiguous().view(_BITS[tensor.element_size()]).numpy()
    return bits.view(_foreign(name))


def back(array: Array, like: Any) -> Any:
    return tensor_of(array).to(like.device)


def tensor_of(array: Array) -> torch.Tensor:
    name = array.dtype.name
    plain = np.array(array)  # a copy: a run's output may be referenced elsewhere
    if name not in _FOREIGN:
        return torch.from_numpy(plain)
    return torch.from_numpy(plain.view(f"u{array.dtype.itemsize}")).view(getattr(torch, name))


class _WithoutGradient(torch.autograd.Function):  # type: ignore[misc]
    """The identity, and an error if autograd reaches it: autograd cannot see into kernels."""

    @staticmethod
    def forward(ctx: Any, kernel: str, value: torch.Tensor, *inputs: Any) -> torch.Tensor:
        ctx.kernel = kernel
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        with raising(RunError):
            refuse(
                f"the kernel `{ctx.kernel}` has no gradient: PyTorch cannot see inside it",
                "call it in the forward of a torch.autograd.Function, or register it with its "
                "backward by nkic.nki.torch_ops.custom_op; for no gradient pass `tensor.detach()`",
            )


def guarded(values: Any, arguments: Sequence[Any], kernel: str) -> Any:
    """Return results whose gradient is an error, if one could be requested."""
    tracked = [each for each in arguments if isinstance(each, torch.Tensor) and each.requires_grad]
    if not tracked or not torch.is_grad_enabled():
        return values
    if isinstance(values, tuple):
        return tuple(guarded(each, arguments, kernel) for each in values)
    if not isinstance(values, torch.Tensor) or not values.is_floating_point():
        return values
    return _WithoutGradient.apply(kernel, values, *tracked)


def update(value: Any, array: Array) -> None:
    """Write to a tensor, as an operation of PyTorch does."""
    if value.requires_grad:
        refuse(
            "the kernel writes a tensor that requires a gradient, which PyTorch would not see",
            "return a new tensor from the kernel, or pass `tensor.detach()`",
        )
    with torch.no_grad():
        value.copy_(tensor_of(array))


_TYPES = {bool: "bool", int: "int", float: "float", str: "str"}


def custom_op(
    name: str,
    kernel: Any,
    *,
    outputs: int = 1,
    mutates: Sequence[str] = (),
    scalars: Sequence[str] = (),
    setup_context: Callable[..., None] | None = None,
    backward: Callable[..., Any] | None = None,
) -> Any:
    """Register a kernel as the operator `name` ("library::operator"), and return it as a function.

    Parameters are tensors, or numbers and strings if they have such a default; `scalars` names
    further parameters that are numbers. `outputs` is the number of tensors that the kernel returns,
    `mutates` names the parameters that it writes. `backward` and `setup_context` are those of
    `torch.library.register_autograd`. Raises `CompileError`.
    """
    registered = kernel_of(kernel)
    with raising(CompileError):
        schema = _schema(registered, outputs, mutates, scalars)

    def run(*args: Any) -> Any:
        with torch.no_grad():  # the operator has its own gradient
            return registered(*args)

    operator = torch.library.custom_op(name, run, mutates_args=tuple(mutates), schema=schema)
    operator.register_fake(lambda *args: _fake(registered, args, outputs))
    if backward is not None:
        operator.register_autograd(backward, setup_context=setup_context)
    return operator


def _schema(kernel: Kernel, outputs: int, mutates: Sequence[str], scalars: Sequence[str]) -> str:
    parameters = inspect.signature(kernel.func).parameters
    for name in (*mutates, *scalars):
        if name not in parameters:
            refuse(f"the kernel has no parameter `{name}`")
    typed = [_parameter(p, mutates, scalars) for p in parameters.values()]
    results = {0: "()", 1: "Tensor"}.get(outputs, f"({', '.join(['Tensor'] * outputs)})")
    return f"({', '.join(typed)}) -> {results}"


def _parameter(parameter: inspect.Parameter, mutates: Sequence[str], scalars: Sequence[str]) -> str:
    name, default = parameter.name, parameter.default
    if name in mutates:
        return f"Tensor(a{[*mutates].index(name)}!) {name}"
    if name in scalars:
        return f"float {name}"
    if default is parameter.empty:
        return f"Tensor {name}"
    kind = _TYPES.get(type(default))
    if kind is None:
        refuse(
            f"the default of `{name}` is a {type(default).__name__}, which operators cannot take",
            "register a function with fewer parameters, or give it a number or text",
        )
    shown = f'"{default}"' if kind == "str" else default
    return f"{kind} {name}={shown}"


def _fake(kernel: Kernel, args: Sequence[Any], outputs: int) -> Any:
    """Return tensors without data, of the shapes that the kernel returns for tensors like
    `args`.
    """
    device = next(
        (argument.device for argument in args if isinstance(argument, torch.Tensor)), None
    )
    arguments = [_without_data(argument) for argument in args]
    # Compiling uses plain arrays, so it adds no operations to the traced program.
    artifact = kernel.prepare(*arguments).artifact
    inputs = {p.name for p in artifact.signature.inputs}
    parameters = [p for p in artifact.signature.outputs if p.name not in inputs]
    if len(parameters) != outputs:
        raise RuntimeError(
            f"the kernel returns {len(parameters)} tensors, but {outputs} were registered"
        )
    results = [
        torch.empty(tuple(p.shape), dtype=_dtype(numpy_type(p.dtype)), device=device)
        for p in parameters
    ]
    return results[0] if outputs == 1 else tuple(results) if outputs else None


def _without_data(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    kind = numpy_dtype(value.dtype)
    return np.broadcast_to(np.zeros((), kind), tuple(int(size) for size in value.shape))


def _dtype(kind: np.dtype[Any]) -> torch.dtype:
    dtype = getattr(torch, kind.name)
    assert isinstance(dtype, torch.dtype)
    return dtype
