"""The operators of `machine.operators.ALU`, element by element.

`ARITHMETIC` works on float32: each result is rounded once, to nearest even. `INTEGERS` is the exact
32-bit path of gpsimd: sums and products wrap around. `BITVEC` works on bits, given as unsigned
integers. Operands broadcast to `out`; a constant is a 0-dimensional array; unary operators ignore
the second operand. True is 1, false is 0. The maximum or minimum of 0 and -0 is 0, because
processors differ. `average` is a reduction only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.scratch import scratch
from nkic.simulate.numerics import activation
from nkic.simulate.numerics.vector import select

Array = NDArray[Any]
Alu = Callable[[Array, Array, Array], Any]

_ZERO = np.array(0, np.float32)
_INF = np.array(np.inf, np.float32)


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
    """Copy a."""
    np.copyto(out, a)


def _unary(function: Callable[[Array, Array], Any]) -> Alu:
    return lambda a, b, out: function(a, out)


def _function(name: str) -> Alu:
    function = activation.FUNCTIONS[name]
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
