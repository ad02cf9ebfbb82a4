"""Kernels as operators of PyTorch, so that `torch.compile` traces through them.

`custom_op` registers a kernel with `torch.library`: for tensors without data (fake tensors), the
results have the shapes that the kernel compiles to; `backward` makes it differentiable.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from nkic.api.arrays import numpy_type
from nkic.api.errors import CompileError, raising, refuse
from nkic.nki import torch_arrays
from nkic.nki.jit import Kernel, kernel_of

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
    kind = torch_arrays.numpy_dtype(value.dtype)
    return np.broadcast_to(np.zeros((), kind), tuple(int(size) for size in value.shape))


def _dtype(kind: np.dtype[Any]) -> torch.dtype:
    dtype = getattr(torch, kind.name)
    assert isinstance(dtype, torch.dtype)
    return dtype
