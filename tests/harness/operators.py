"""Operators and functions by their definitions, in float64 and Python's integers, without code of
nkic.

Numbers are float64 arrays that hold float32 values; results are rounded to float32 once.
"""

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.harness.reference import single

Array = NDArray[Any]


def _true(a: Array) -> Array:
    return np.asarray(a != 0)


BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "abs_max": lambda a, b: np.where(np.abs(a) > np.abs(b), a, b),
    "abs_min": lambda a, b: np.where(np.abs(a) < np.abs(b), a, b),
    "power": np.float_power,
    "logical_and": lambda a, b: _true(a) & _true(b),
    "logical_or": lambda a, b: _true(a) | _true(b),
    "logical_xor": lambda a, b: _true(a) ^ _true(b),
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
}
UNARY: dict[str, Callable[[Array], Array]] = {
    "logical_not": lambda a: a == 0,
    "abs": np.abs,
    "square": lambda a: a * a,
    "relu": lambda a: np.maximum(a, 0),
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "reciprocal": lambda a: 1 / a,
    "bypass": lambda a: a,
}
BITS: dict[str, Callable[..., int]] = {
    "bitwise_and": lambda a, b, width: a & b,
    "bitwise_or": lambda a, b, width: a | b,
    "bitwise_xor": lambda a, b, width: a ^ b,
    "invert": lambda a, b, width: ~a,
    "left_shift": lambda a, b, width: a << b if b < width else 0,
    "right_shift": lambda a, b, width: a >> b if b < width else 0,
}


def apply(op: str, a: Array, b: Array | None, reverse: bool = False) -> Array:
    """Apply one operator to float32 numbers and round to float32."""
    with np.errstate(all="ignore"):
        if op in UNARY:
            return single(UNARY[op](a))
        assert b is not None
        return single(BINARY[op](b, a) if reverse else BINARY[op](a, b))


def whole(op: str, a: Array, b: Array, reverse: bool = False) -> Array:
    """Apply one operator to integers exactly, as Python's integers."""
    first, second = (b, a) if reverse else (a, b)
    found = BINARY[op](first.astype(object), second.astype(object))
    return np.asarray(found, object) + 0


def bits(op: str, a: Array, b: Array | int | None, reverse: bool = False) -> Array:
    """Apply one operator to the bits in `a`, of unsigned type, and to as many bits of `b`."""
    width = 8 * a.dtype.itemsize
    mask = (1 << width) - 1
    other = np.broadcast_to(np.asarray(0 if b is None else b, object), a.shape).ravel()
    pairs = zip(a.ravel().tolist(), (int(v) & mask for v in other), strict=True)
    found = [
        BITS[op](y, x, width) & mask if reverse and op != "invert" else BITS[op](x, y, width) & mask
        for x, y in pairs
    ]
    return np.array(found, a.dtype).reshape(a.shape)


def fold(op: str, rows: Array) -> Array:
    """Reduce the last axis to one float32: sums, products and means exactly, then rounded."""
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        if op == "average":
            return single(rows.sum(-1) / rows.shape[-1])
        if op in ("add", "multiply"):
            return single(rows.sum(-1) if op == "add" else rows.prod(-1))
        if op == "subtract":
            return single(rows[..., 0] - rows[..., 1:].sum(-1))
        total = rows[..., 0] if not op.startswith("logical") else 1.0 * _true(rows[..., 0])
        for i in range(1, rows.shape[-1]):
            total = apply(op, total, rows[..., i])
        return single(total)


def fold_bits(op: str, rows: Array) -> Array:
    """Reduce the last axis of unsigned words to one word."""
    total = rows[..., 0].copy()
    for i in range(1, rows.shape[-1]):
        total = bits(op, total, rows[..., i])
    return total


IDENTITY = {
    **{"add": 0.0, "subtract": 0.0, "multiply": 1.0, "maximum": -np.inf, "minimum": np.inf},
    **{"abs_max": 0.0, "abs_min": np.inf},
}

# Activation functions, of one number.


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def phi(x: float) -> float:
    """Return the distribution function of the normal distribution."""
    return math.erfc(-x / math.sqrt(2)) / 2


def softplus(x: float) -> float:
    return max(x, 0) + math.log1p(math.exp(-abs(x)))


def _apprx_sigmoid_dx(x: float) -> float:
    gate = sigmoid(1.702 * x)
    return gate * (1 + 1.702 * x * (1 - gate))


def _apprx_tanh(x: float) -> float:
    return x * sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))


FUNCTIONS: dict[str, Callable[[float], float]] = {
    "copy": lambda x: x,
    "square": lambda x: x * x,
    "abs": abs,
    "sign": lambda x: (x > 0) - (x < 0),
    "relu": lambda x: max(x, 0),
    "exp": math.exp,
    "log": math.log,
    "sqrt": math.sqrt,
    "rsqrt": lambda x: 1 / math.sqrt(x),
    "reciprocal": lambda x: 1 / x,
    "sin": math.sin,
    "arctan": math.atan,
    "tanh": math.tanh,
    "sigmoid": sigmoid,
    "softplus": softplus,
    "mish": lambda x: x * math.tanh(softplus(x)),
    "silu": lambda x: x * sigmoid(x),
    "silu_dx": lambda x: sigmoid(x) * (1 + x * (1 - sigmoid(x))),
    "erf": math.erf,
    "erf_dx": lambda x: 2 / math.sqrt(math.pi) * math.exp(-x * x),
    "gelu": lambda x: x * phi(x),
    "gelu_dx": lambda x: phi(x) + x * math.exp(-x * x / 2) / math.sqrt(2 * math.pi),
    "gelu_apprx_tanh": _apprx_tanh,
    "gelu_apprx_sigmoid": lambda x: x * sigmoid(1.702 * x),
    "gelu_apprx_sigmoid_dx": _apprx_sigmoid_dx,
}
RANGES = {  # the valid range of the tables, by the published list of functions
    "log": (2.0**-64, 2.0**64),
    "sqrt": (2.0**-116, 2.0**118),
    "rsqrt": (2.0**-87, 2.0**97),
    "sin": (-math.pi, math.pi),
    "arctan": (-math.pi / 2, math.pi / 2),
}


def activated(op: str, x: Array, parameter: Array) -> tuple[Array, Array]:
    """Return the function of every number, and where this reference applies: not beyond ±60, and
    not outside the function's range.
    """
    low, high = RANGES.get(op, (-60.0, 60.0))
    with np.errstate(invalid="ignore"):
        valid = (x >= max(low, -60)) & (x <= min(high, 60))
    if op == "reciprocal":
        valid &= np.abs(x) >= 2.0**-42
    if op == "prelu":
        slope = np.broadcast_to(parameter, x.shape)
        with np.errstate(all="ignore"):
            found = np.where(x > 0, x, slope * x)
    else:
        found = np.zeros(x.shape)
        found[valid] = [FUNCTIONS[op](float(v)) for v in x[valid]]
    return found, valid
