"""The functions of `machine.operators.ACTIVATIONS`, element by element.

Each is the true function, computed in float64 and rounded once to float32: the device's tables are
unpublished, and NumPy's float32 functions differ between processors (in float64 they differ by at
most a few units in the last place, which changes one rounding in 10^10). Limits hold at infinity.
Outside the valid range of the device the true value is returned, except for `sin`, whose cubic
extension is documented. Subnormal results are kept.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial, inf, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.scratch import blocks
from nkic.simulate.numerics.normal import NORMAL_LIMIT, erf, probability
from nkic.simulate.numerics.vector import select

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Function = Callable[[Floats, Floats, Floats], Any]  # input, out, parameter

_SMALL_BLOCK = 1 << 13  # elements: temporaries of 64 KiB, from the heap and in the cache
_EXP_LIMIT = 800.0  # beyond, exp is 0 or infinite even in float64
_ZERO = np.array(0, np.float32)
_INF = np.array(np.inf, np.float32)
_SINE = [(-1) ** k / factorial(2 * k + 1) for k in range(9)]


def relu(x: Floats, out: Floats, parameter: Floats = _ZERO) -> None:
    """Clamp at 0; NaN stays NaN, and -0 becomes 0."""
    np.clip(x, _ZERO, _INF, out=out)
    np.add(out, _ZERO, out=out)


def prelu(x: Floats, out: Floats, parameter: Floats) -> None:
    """Multiply negative elements by `parameter`, one slope for all, or (P, 1)."""
    select(x > 0, x, np.multiply(x, parameter), out)


def sign(x: Floats, out: Floats, parameter: Floats = _ZERO) -> None:
    """Return -1, 0 or 1; NaN stays NaN."""
    np.sign(x, out=out)
    np.add(out, _ZERO, out=out)


def _copy(x: Floats, out: Floats, parameter: Floats) -> None:
    np.copyto(out, x)


def _sine(x: Doubles) -> Doubles:
    """Return the sine within ±pi, and beyond it a cubic that continues it: sin(9) is 27.65.

    The sine is its Taylor series to x^17, with x mirrored into ±pi/2.
    """
    mirrored = 2 * np.clip(x, -pi / 2, pi / 2) - x
    square = mirrored * mirrored
    value = np.full_like(x, _SINE[-1])
    for coefficient in _SINE[-2::-1]:
        value *= square
        value += coefficient
    value *= mirrored
    value = np.copysign(value, x)  # of -0 too
    beyond = np.abs(x) > pi
    if beyond.any():
        excess = np.abs(x[beyond]) - pi
        value[beyond] = np.sign(x[beyond]) * excess * (excess * excess / 6 - 1)
    return value


def _sigmoid(x: Doubles) -> Doubles:
    gate: Doubles = 1 / (1 + np.exp(-x))
    return gate


def _softplus(x: Doubles) -> Doubles:
    return np.clip(x, 0, inf) + np.log1p(np.exp(-np.abs(x)))


def _mish(x: Doubles) -> Doubles:
    x = np.clip(x, -_EXP_LIMIT, inf)
    power = np.exp(np.clip(x, -inf, 40))
    ratio: Doubles = power * (power + 2)
    return x * (ratio / (ratio + 2))


def _silu(x: Doubles) -> Doubles:
    x = np.clip(x, -_EXP_LIMIT, inf)
    return x * _sigmoid(x)


def _silu_dx(x: Doubles) -> Doubles:
    x = np.clip(x, -_EXP_LIMIT, _EXP_LIMIT)
    gate = _sigmoid(x)
    return gate * (1 + x * (1 - gate))


def _erf_dx(x: Doubles) -> Doubles:
    bell: Doubles = np.exp(-x * x)
    return bell * (2 / sqrt(pi))


def _gelu(x: Doubles) -> Doubles:
    return np.clip(x, -NORMAL_LIMIT, inf) * probability(np.clip(x, -NORMAL_LIMIT, NORMAL_LIMIT))


def _gelu_dx(x: Doubles) -> Doubles:
    x = np.clip(x, -NORMAL_LIMIT, NORMAL_LIMIT)
    return probability(x) + x * np.exp(x * x * -0.5) * (1 / sqrt(2 * pi))


def _gelu_apprx_tanh(x: Doubles) -> Doubles:
    x = np.clip(x, -_EXP_LIMIT, inf)
    return x * _sigmoid(2 * sqrt(2 / pi) * (x + 0.044715 * x * x * x))


def _gelu_apprx_sigmoid(x: Doubles) -> Doubles:
    x = np.clip(x, -_EXP_LIMIT, inf)
    return x * _sigmoid(1.702 * x)


def _gelu_apprx_sigmoid_dx(x: Doubles) -> Doubles:
    x = np.clip(x, -_EXP_LIMIT, _EXP_LIMIT)
    gate = _sigmoid(1.702 * x)
    return gate * (1 + 1.702 * x * (1 - gate))


def _single(ufunc: np.ufunc) -> Function:
    """Wrap a function that NumPy computes in float32 exactly or correctly rounded."""
    return lambda x, out, parameter: ufunc(x, out=out)


def _double(ufunc: np.ufunc) -> Function:
    """Wrap a function that NumPy computes in float64."""
    return lambda x, out, parameter: ufunc(x, out=out, dtype=np.float64, casting="same_kind")


def _in_float64(function: Callable[[Doubles], Doubles]) -> Function:
    """Wrap a composition of NumPy's functions in float64, rounded once."""

    def rounded_once(x: Floats, out: Floats, parameter: Floats) -> None:
        for rows in blocks(x.shape, _SMALL_BLOCK):
            np.copyto(out[rows], function(x[rows].astype(np.float64)), casting="same_kind")

    return rounded_once


FUNCTIONS: dict[str, Function] = {
    "copy": _copy,
    "square": _single(np.square),
    "abs": _single(np.abs),
    "sign": sign,
    "relu": relu,
    "prelu": prelu,
    "exp": _double(np.exp),
    "log": _double(np.log),
    "sqrt": _single(np.sqrt),
    "rsqrt": _in_float64(lambda x: 1 / np.sqrt(x)),
    "reciprocal": _single(np.reciprocal),
    "sin": _in_float64(_sine),
    "arctan": _double(np.arctan),
    "tanh": _double(np.tanh),
    "sigmoid": _in_float64(_sigmoid),
    "softplus": _in_float64(_softplus),
    "mish": _in_float64(_mish),
    "silu": _in_float64(_silu),
    "silu_dx": _in_float64(_silu_dx),
    "erf": _in_float64(erf),
    "erf_dx": _in_float64(_erf_dx),
    "gelu": _in_float64(_gelu),
    "gelu_dx": _in_float64(_gelu_dx),
    "gelu_apprx_tanh": _in_float64(_gelu_apprx_tanh),
    "gelu_apprx_sigmoid": _in_float64(_gelu_apprx_sigmoid),
    "gelu_apprx_sigmoid_dx": _in_float64(_gelu_apprx_sigmoid_dx),
}
