"""Conversion between PyTorch tensors and NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from nkic.api.arrays import Array
from nkic.api.errors import RunError, raising, refuse

# Types that NumPy lacks are passed as integers with the same bits.
cast = "`.to(torch.{})`"
_BITS = {1: torch.uint8, 2: torch.int16}
_FOREIGN = ("bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu")


def _foreign(name: str) -> np.dtype[Any]:
    """Return the NumPy type that ml_dtypes provides."""
    try:
        import ml_dtypes
    except ImportError:
        refuse(f"a tensor of torch.{name} needs the package ml_dtypes", "pip install ml_dtypes")
    dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
    return dtype


def numpy_dtype(dtype: torch.dtype) -> np.dtype[Any]:
    """Return the NumPy type of a PyTorch type."""
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
    """Return a tensor on the device of `like`."""
    return tensor_of(array).to(like.device)


def tensor_of(array: Array) -> torch.Tensor:
    """Return a new tensor with the values of an array."""
    name = array.dtype.name
    plain = np.array(array)  # a copy: a run's output may be referenced elsewhere
    if name not in _FOREIGN:
        return torch.from_numpy(plain)
    bits = torch.from_numpy(plain.view(f"u{array.dtype.itemsize}"))
    return bits.view(getattr(torch, name))


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
