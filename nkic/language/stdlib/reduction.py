"""Reductions over the last free dimensions of a tile.

`axis` is one dimension, or several consecutive ones up to the last. Without `dtype` the result has
the dtype of the tile.
"""

import nki.isa as nisa
import nki.language as nl
from nkic.stdlib import _require, _with_number, multiply, square, subtract


def _axes_of(x, axis):
    """Return the dimensions in `axis`, sorted and non-negative."""
    rank = len(x.shape)
    text = "axis is a tensor, but must be a number: this reduces one tensor"
    advice = "for the larger or smaller of two elements: nl.maximum(x, y), nl.minimum(x, y)"
    _require(not isinstance(axis, nl.NkiTensor), text, help=advice)
    listed = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = sorted(a + rank if a < 0 else a for a in listed)
    _require(
        axes == list(range(rank - len(axes), rank)),
        "axis {} of {} cannot be reduced: only the last dimensions can, without gaps",
        axis,
        x.shape,
        help=f"use axis={rank - 1}, or transpose first",
    )
    advice = "transpose first, or use nisa.tensor_partition_reduce"
    _require(axes[0] > 0, "axis {} of {} is the partition dimension", axis, x.shape, help=advice)
    return tuple(axes)


def _reduced_shape(x, axes):
    """Return the shape of `x` with size 1 in `axes`."""
    return tuple(1 if dim in axes else x.shape[dim] for dim in range(len(x.shape)))


def _reduced(op, x, axis, dtype, keepdims):
    """Reduce `x` by `op`."""
    axes = _axes_of(x, axis)
    result = nl.ndarray(_reduced_shape(x, axes), dtype=dtype or x.dtype, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=result, op=op, data=x, axis=axes, keepdims=True)
    return result if keepdims else _squeezed(result, axes)


def _squeezed(x, axes):
    """Drop the dimensions `axes`, of size 1; a tile keeps at least two dimensions."""
    for dim in reversed(axes):
        if len(x.shape) > 2:
            x = x.squeeze_dim(dim)
    return x


def sum(x, axis, dtype=None, keepdims=False):
    """The sum over `axis`."""
    return _reduced(nl.add, x, axis, dtype, keepdims)


def prod(x, axis, dtype=None, keepdims=False):
    """The product over `axis`."""
    return _reduced(nl.multiply, x, axis, dtype, keepdims)


def max(x, axis, dtype=None, keepdims=False):
    """The largest element over `axis`."""
    return _reduced(nl.maximum, x, axis, dtype, keepdims)


def min(x, axis, dtype=None, keepdims=False):
    """The smallest element over `axis`."""
    return _reduced(nl.minimum, x, axis, dtype, keepdims)


def all(x, axis, dtype=None):
    """1 where no element is 0, else 0."""
    return _reduced(nl.logical_and, x, axis, dtype, False)


def mean(x, axis, dtype=None, keepdims=False):
    """The mean over `axis`, computed in float32."""
    total = _reduced(nl.add, x, axis, nl.float32, keepdims)
    return _with_number(
        nl.multiply, total, 1.0 / _count(x, _axes_of(x, axis)), dtype or x.dtype, False
    )


def var(x, axis, dtype=None, keepdims=False):
    """The variance over `axis`, computed in float32. The axes are kept regardless of `keepdims`."""
    centred = subtract(x, mean(x, axis, nl.float32, True), nl.float32)
    return mean(square(centred), axis, dtype or x.dtype, True)


def _count(x, axes):
    """Return the number of elements along `axes`."""
    elements = 1
    for dim in axes:
        elements *= x.shape[dim]
    return elements


def softmax(x, axis=-1, dtype=None):
    """exp(x) / sum of exp(x), shifted by the largest element to prevent overflow."""
    shifted = subtract(x, max(x, axis, nl.float32, True), nl.float32)
    powers = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation(dst=powers, op=nl.exp, data=shifted)
    total = sum(powers, axis, nl.float32, True)
    nisa.reciprocal(dst=total, data=total)
    return multiply(powers, total, dtype or x.dtype)


def rms_norm(x, w, axis, n, epsilon=1e-6, dtype=None, compute_dtype=None):
    """x / sqrt(sum of x² / n + epsilon) times w."""
    kind = compute_dtype or nl.float32
    squares = sum(square(x, kind), axis, nl.float32, True)
    nisa.tensor_scalar(
        dst=squares, data=squares, op0=nl.multiply, operand0=1.0 / n, op1=nl.add, operand1=epsilon
    )
    nisa.tensor_scalar(dst=squares, data=squares, op0=nl.rsqrt, operand0=None)
    return multiply(multiply(x, squares, kind), w, dtype or x.dtype)
