"""The operators of `machine.operators.ALU`, element by element.

`ARITHMETIC` works on float32: each result is rounded once, to nearest even. `INTEGERS` is the exact
32-bit path of gpsimd: sums and products wrap around. `BITVEC` works on bits, given as unsigned
integers. Operands broadcast to `out`; a constant is a 0-dimensional array; unary operators ignore
the second operand. True is 1, false is 0. The maximum or minimum of 0 and -0 is 0, because
processors differ. `average` is a reduction only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import erf as erf_of_one
from math import erfc as erfc_of_one
from math import exp, factorial, inf, pi, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nkic.machine.codecs import blocks, scratch

# ---- The error function and the normal distribution, in float64, for whole arrays ---------------
# NumPy has neither. Both are tabulated at multiples of 1/512 (from `math.erf` and `math.erfc`) and
# extended to the argument by the Taylor series of the integral of exp(-t^2): the relative error is
# below 1e-10 everywhere, including the tails, a thousandth of a float32's last place.

Doubles = NDArray[np.float64]

NORMAL_LIMIT = 15.0  # the density of the normal distribution there is 0 in float32
_LIMIT = NORMAL_LIMIT * sqrt(0.5)
_STEPS = 512  # nodes per unit
_MIDDLE = int(_LIMIT * _STEPS) + 2  # index of the node at 0
# Adding this to a number below 2^51 leaves the nearest integer in the low bits of the sum.
_MAGIC = 1.5 * 2.0**52
_INDEX_OF_MAGIC = int(np.array(_MAGIC).view(np.int64)) - _MIDDLE


class _Nodes(NamedTuple):
    erf: Doubles
    probability: Doubles
    slope: Doubles  # of erf


@cache
def _nodes() -> _Nodes:
    places = [i / _STEPS for i in range(-_MIDDLE, _MIDDLE + 1)]
    return _Nodes(
        np.array([erf_of_one(c) for c in places]),
        np.array([erfc_of_one(-c) / 2 for c in places]),
        np.array([2 / sqrt(pi) * exp(-c * c) for c in places]),
    )


def erf(x: Doubles) -> Doubles:
    node, difference = _from_node(np.clip(x, -_LIMIT, _LIMIT))
    difference += np.take(_nodes().erf, node, mode="clip")
    return np.copysign(difference, x)  # of -0 too


def probability(x: Doubles) -> Doubles:
    """Return Phi, the probability that a normal variable is less than x, for |x| <= FAR."""
    node, difference = _from_node(x * sqrt(0.5))
    difference *= 0.5
    difference += np.take(_nodes().probability, node, mode="clip")
    return difference


def _from_node(z: Doubles) -> tuple[NDArray[np.int64], Doubles]:
    """Return the index of the nearest node c, and erf(z) - erf(c).

    With d = z - c, a = c d, b = d^2, it is slope(c) d times the sum over n of (-2a)^n / (n+1)! - b
    (-2a)^n / (n! (n+3)) + O(b^2), where |a| < 0.011 and b < 1e-6; the terms kept are 1 - a + 2/3
    a^2 - 1/3 a^3 - b/3 + a b/2. It is computed in place, since temporaries cost as much as
    arithmetic.
    """
    shifted = z * _STEPS
    shifted += _MAGIC
    index = shifted.view(np.int64) - _INDEX_OF_MAGIC
    c = shifted
    c -= _MAGIC
    c *= 1 / _STEPS
    d = z - c
    a, b = c * d, d * d
    series = a * (-1 / 3)
    series += 2 / 3
    series *= a
    b *= 0.5
    series += b
    series -= 1
    series *= a
    b *= 2 / 3
    series -= b
    series += 1
    series *= d
    # A NaN has no index: clip accepts any, and the series yields NaN.
    series *= np.take(_nodes().slope, index, mode="clip")
    return index, series


# ---- Vector engine instructions that are more than an operator, on arrays (P, N) ----------------

Array = NDArray[Any]
Floats = NDArray[np.float32]

LINE = 64  # bytes of a cache line


def select(condition: NDArray[np.bool_], on_true: Array, on_false: Array, out: Array) -> None:
    """Select `on_true` where the condition holds, else `on_false`, bitwise (any 32-bit type).

    Both broadcast to `out`. A blend of bits takes the same time for every mask; np.where is four
    times slower for an irregular mask.
    """
    bits = np.uint32
    for rows in blocks(out.shape):
        shape = out[rows].shape
        mask, mixed = scratch("select.mask", shape, bits), scratch("select", shape, bits)
        true, false = (np.broadcast_to(x.view(bits), out.shape)[rows] for x in (on_true, on_false))
        np.copyto(mask, np.broadcast_to(condition, out.shape)[rows])
        np.negative(mask, out=mask)  # all bits, or none
        np.bitwise_xor(true, false, out=mixed)
        np.bitwise_and(mixed, mask, out=mixed)
        np.bitwise_xor(mixed, false, out=out[rows].view(bits))


def transpose(values: Array, out: Array) -> None:
    """Transpose (P, N) to (N, P), bitwise, for any type; the arrays must not overlap.

    The values are first copied to rows of an odd number of cache lines: rows of a power of two of
    bytes share cache sets, which makes the plain copy up to five times slower.
    """
    rows, columns = values.shape
    unit = max(1, LINE // values.itemsize)
    pitch = (-(-columns // unit) | 1) * unit
    spread = scratch("transpose", (rows, pitch), values.dtype.type)[:, :columns]
    np.copyto(spread, values)
    np.copyto(out, spread.T)


def max8(values: Floats, out: Floats) -> None:
    """Write the eight largest of each partition, descending: (P, 8). NaN counts as largest."""
    largest = np.partition(values, values.shape[1] - 8, axis=1)[:, -8:]
    largest.sort(axis=1)
    np.add(largest[:, ::-1], np.float32(0), out=out)  # -0 becomes 0: their order depends on NumPy


# ---- The functions of `machine.operators.ACTIVATIONS`, element by element -----------------------
# Each is the true function, computed in float64 and rounded once to float32: the device's tables
# are unpublished, and NumPy's float32 functions differ between processors (in float64 they differ
# by at most a few units in the last place, which changes one rounding in 10^10). Limits hold at
# infinity. Outside the valid range of the device the true value is returned, except for `sin`,
# whose cubic extension is documented. Subnormal results are kept.

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


# --------------------------------------------------------------------------------------------------

Alu = Callable[[Array, Array, Array], Any]


def maximum(a: Array, b: Array, out: Array) -> None:
    """Write the greater operand; NaN if either is."""
    if b.size == 1:  # np.maximum is slower than np.clip with a constant
        np.clip(a, b, _INF, out=out)
    else:
        np.maximum(a, b, out=out)
    np.add(out, _ZERO, out=out)


def minimum(a: Array, b: Array, out: Array) -> None:
    """Write the lesser operand; NaN if either is."""
    if b.size == 1:
        np.clip(a, -_INF, b, out=out)
    else:
        np.minimum(a, b, out=out)
    np.add(out, _ZERO, out=out)


def abs_max(a: Array, b: Array, out: Array) -> None:
    """Write the operand of greater magnitude, with its sign; b if they tie."""
    select(np.abs(a) > np.abs(b), a, b, out)


def abs_min(a: Array, b: Array, out: Array) -> None:
    """Write the operand of lesser magnitude, with its sign; b if they tie."""
    select(np.abs(a) < np.abs(b), a, b, out)


def power(a: Array, b: Array, out: Array) -> None:
    """Compute in float64, rounded once."""
    np.power(a, b, out=out, dtype=np.float64, casting="same_kind")


def bypass(a: Array, b: Array, out: Array) -> None:
    np.copyto(out, a)


def _unary(function: Callable[[Array, Array], Any]) -> Alu:
    return lambda a, b, out: function(a, out)


def _function(name: str) -> Alu:
    function = FUNCTIONS[name]
    return lambda a, b, out: function(a, out, _ZERO)


def _logical(combine: np.ufunc) -> Alu:
    """Apply a bitwise ufunc to truth values as bytes; NumPy's logical ufuncs are slow on floats."""

    def logical(a: Array, b: Array, out: Array) -> None:
        left = scratch("logical.a", out.shape, np.bool_)
        right = scratch("logical.b", b.shape, np.bool_)
        np.not_equal(a, 0, out=left)
        np.not_equal(b, 0, out=right)
        both = left.view(np.uint8)
        combine(both, right.view(np.uint8), out=both)
        np.copyto(out, both)

    return logical


_COMPARISONS: dict[str, Alu] = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "greater_equal": np.greater_equal,
    "greater": np.greater,
    "less_equal": np.less_equal,
    "less": np.less,
    "logical_and": _logical(np.bitwise_and),
    "logical_or": _logical(np.bitwise_or),
    "logical_xor": _logical(np.bitwise_xor),
}
ARITHMETIC: dict[str, Alu] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": maximum,
    "minimum": minimum,
    **_COMPARISONS,
    "abs_max": abs_max,
    "abs_min": abs_min,
    "power": power,
    "logical_not": lambda a, b, out: np.equal(a, 0, out=out),
    "abs": _unary(np.abs),
    "square": _unary(np.square),
    "relu": _function("relu"),
    "rsqrt": _function("rsqrt"),
    "reciprocal": _function("reciprocal"),
    "bypass": bypass,
}
INTEGERS: dict[str, Alu] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": lambda a, b, out: np.maximum(a, b, out=out),
    "minimum": lambda a, b, out: np.minimum(a, b, out=out),
    **_COMPARISONS,
}
BITVEC: dict[str, Alu] = {
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "invert": lambda a, b, out: np.invert(a, out=out),
    # A shift by at least the width gives 0. A negative count is a large unsigned one.
    "left_shift": np.left_shift,
    "right_shift": np.right_shift,
}


# ------------------------------------------------------------------------------------------------
# The XORWOW generator (Marsaglia 2003, "Xorshift RNGs"), vectorised, in 32-bit words.
# A state is six words x, y, z, w, v, d. A draw is
#
#     t = x ^ (x >> 2);  x, y, z, w = y, z, w, v
#     v = v ^ (v << 4) ^ t ^ (t << 1);  d += 362437;  the draw is v + d

Words = NDArray[np.uint32]

STATE = 6  # words
_WEYL = np.uint32(362437)
_1, _2, _4, _13, _16 = (np.uint32(bits) for bits in (1, 2, 4, 13, 16))  # shifts


def draw(states: Words, count: int) -> Words:
    """Return `count` draws for each lane, (P, count), and advance `states` (P, 6 S).

    The S generators of a lane take turns: draw i is of generator i mod S. All draw equally often,
    so some draws of the last round may be discarded.
    """
    lanes, words = states.shape
    generators = words // STATE
    x, y, z, w, v, d = np.moveaxis(states.reshape(lanes, generators, STATE), 2, 0).copy()
    rounds = -(-count // generators)
    out = np.empty((rounds, lanes, generators), np.uint32)
    for drawn in out:
        t = x ^ (x >> _2)
        x, y, z, w = y, z, w, v
        v = v ^ (v << _4) ^ t ^ (t << _1)
        d = d + _WEYL
        np.add(v, d, out=drawn)
    states[...] = np.stack((x, y, z, w, v, d), axis=2).reshape(lanes, words)
    return out.transpose(1, 0, 2).reshape(lanes, -1)[:, :count]


def seeded(seed: int, lanes: int, generators: int) -> Words:
    """Return the states (lanes, 6 generators) of a 32-bit seed.

    They are hashes of the seed and of the index of the word.
    """
    numbers = np.arange(lanes * generators * STATE, dtype=np.uint32)
    start = _hash(np.array([seed & 0xFFFFFFFF], np.uint32))
    return _hash(numbers + start).reshape(lanes, -1)


def _hash(words: Words) -> Words:
    """Return a permutation of 32-bit words without visible structure (murmur3's finaliser)."""
    words = (words ^ (words >> _16)) * np.uint32(0x85EBCA6B)
    words = (words ^ (words >> _13)) * np.uint32(0xC2B2AE35)
    hashed: Words = words ^ (words >> _16)
    return hashed


def uniform(bits: Words) -> Floats:
    """Return numbers in [0, 1): the 24 highest bits, which float32 holds exactly."""
    return (bits >> 8).astype(np.float32) * np.float32(2.0**-24)
