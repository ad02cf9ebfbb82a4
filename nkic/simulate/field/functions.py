"""Operators and activation functions on elements of the field, under the names of the machine.

Functions made of exponentials are written out, so that identities among them hold. Others are
random functions, each keyed by its name, with the symmetry that it has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import pi, sqrt

import numpy as np

from nkic.machine.operators import ALU
from nkic.simulate.field import elements, modular
from nkic.simulate.field.elements import (
    Doubles,
    Elements,
    Size,
    add,
    choose,
    constant,
    invert,
    is_true,
    keys,
    made,
    multiply,
    negative,
    truth,
)
from nkic.simulate.field.modular import TOP, Mask
from nkic.simulate.numerics.activation import FUNCTIONS as NUMERIC

Function = Callable[[Elements, int], Elements]
Binary = Callable[[Elements, Elements, int], Elements]
_QUARTERS = 4  # exponents are multiples of a quarter up to 16, or logarithms are used
_MOST = 64


def _number(value: float) -> Elements:
    return constant(np.full((1, 1), float(np.float32(value))))


def _value(name: str, values: Doubles) -> Doubles:
    out = np.empty(values.shape, np.float64)
    with np.errstate(all="ignore"):
        NUMERIC[name](values, out, np.zeros(()))  # type: ignore[arg-type]
    return out


def _scaled(x: Elements, factor: float) -> Elements:
    return multiply(x, _number(factor))


def exp(x: Elements, place: int) -> Elements:
    value = _value("exp", x.value)
    residues = np.where(np.isneginf(x.value), 0, modular.exponentials(x.residues))
    return made(residues, value, Size(1.0, 0.0, x.size.depth + 1), x)


def root(x: Elements, place: int) -> Elements:
    residues, lacking = modular.roots(x.residues)
    result = made(residues, _value("sqrt", x.value), Size(1.0, 0.0, x.size.depth), x)
    return result.noted(place, lacking)


def _rsqrt(x: Elements, place: int) -> Elements:
    return invert(root(x, place), place)


def log(x: Elements, place: int) -> Elements:
    one = (x.residues == 1).all(axis=0)
    residues = np.where(one, 0, modular.hashed("log", x.residues))
    size = Size(1.0, 0.0, x.size.depth)
    return made(residues, _value("log", x.value), size, x).noted(place)


def _odd(name: str) -> Function:
    """Return a random function with f(-x) = -f(x)."""

    def odd(x: Elements, place: int) -> Elements:
        upper = x.residues[TOP] > modular.PRIMES[TOP] // 2
        canonical = np.where(upper, negative(x).residues, x.residues)
        found = np.where(is_true(x), modular.hashed(name, canonical), 0)
        residues = modular.reduced(np.where(upper, -found, found))
        size = Size(1.0, 0.0, x.size.depth)
        return made(residues, _value(name, x.value), size, x).noted(place)

    return odd


def absolute(x: Elements, place: int) -> Elements:
    return choose(keys(x) < 0, negative(x), x).noted(place)


def sign(x: Elements, place: int) -> Elements:
    place_in_order = keys(x)
    positive = truth(place_in_order > 0, place, x)
    return add(positive, negative(truth(place_in_order < 0, place, x)))


def relu(x: Elements, place: int) -> Elements:
    return maximum(x, constant(np.zeros((1, 1))), place)


def prelu(x: Elements, slope: Elements, place: int) -> Elements:
    positive = np.broadcast_to(keys(x) > 0, np.broadcast_shapes(x.value.shape, slope.value.shape))
    return choose(positive, x, multiply(x, slope, place)).noted(place)


def sigmoid(x: Elements, place: int) -> Elements:
    return invert(add(_number(1), exp(negative(x), place)), place)


def _tanh(x: Elements, place: int) -> Elements:
    return add(_scaled(sigmoid(_scaled(x, 2), place), 2), _number(-1))


def _softplus(x: Elements, place: int) -> Elements:
    return log(add(_number(1), exp(x, place)), place)


def _mish(x: Elements, place: int) -> Elements:
    power = exp(x, place)
    ratio = multiply(power, add(power, _number(2)))
    return multiply(x, multiply(ratio, invert(add(ratio, _number(2)), place)), place)


def _gated(factor: float) -> Function:
    """Return x sigmoid(factor x)."""
    return lambda x, place: multiply(x, sigmoid(_scaled(x, factor), place), place)


def _gated_dx(factor: float) -> Function:
    def derivative(x: Elements, place: int) -> Elements:
        inner = _scaled(x, factor)
        gate = sigmoid(inner, place)
        rest = multiply(inner, add(_number(1), negative(gate)))
        return multiply(gate, add(_number(1), rest), place)

    return derivative


def _bell(x: Elements, place: int, factor: float) -> Elements:
    """Return exp(factor x x)."""
    return exp(_scaled(multiply(x, x), factor), place)


def _erf_dx(x: Elements, place: int) -> Elements:
    return _scaled(_bell(x, place, -1), 2 / sqrt(pi))


def _probability(x: Elements, place: int) -> Elements:
    error = _odd("erf")(_scaled(x, sqrt(0.5)), place)
    return _scaled(add(_number(1), error), 0.5)


def _gelu_dx(x: Elements, place: int) -> Elements:
    bell = multiply(x, _scaled(_bell(x, place, -0.5), 1 / sqrt(2 * pi)))
    return add(_probability(x, place), bell)


def _gelu_apprx_tanh(x: Elements, place: int) -> Elements:
    cube = _scaled(multiply(x, multiply(x, x)), 0.044715)
    inner = _scaled(_scaled(add(x, cube), sqrt(2 / pi)), 2)
    return multiply(x, sigmoid(inner, place), place)


FUNCTIONS: Mapping[str, Function] = {
    "copy": lambda x, place: x,
    "square": lambda x, place: multiply(x, x, place),
    "abs": absolute,
    "sign": sign,
    "relu": relu,
    "exp": exp,
    "log": log,
    "sqrt": root,
    "rsqrt": _rsqrt,
    "reciprocal": invert,
    "sin": _odd("sin"),
    "arctan": _odd("arctan"),
    "tanh": _tanh,
    "sigmoid": sigmoid,
    "softplus": _softplus,
    "mish": _mish,
    "silu": _gated(1),
    "silu_dx": _gated_dx(1),
    "erf": _odd("erf"),
    "erf_dx": _erf_dx,
    "gelu": lambda x, place: multiply(x, _probability(x, place), place),
    "gelu_dx": _gelu_dx,
    "gelu_apprx_tanh": _gelu_apprx_tanh,
    "gelu_apprx_sigmoid": _gated(1.702),
    "gelu_apprx_sigmoid_dx": _gated_dx(1.702),
}

# ---- operators ----


def maximum(a: Elements, b: Elements, place: int) -> Elements:
    return _extreme(a, b, keys(a) >= keys(b), place)


def minimum(a: Elements, b: Elements, place: int) -> Elements:
    return _extreme(a, b, keys(a) <= keys(b), place)


def _extreme(a: Elements, b: Elements, first: Mask, place: int) -> Elements:
    """Return the choice, loose unless the other operand is infinite."""
    chosen = choose(first, a, b)
    origin, loose = np.maximum(a.origin, b.origin), np.maximum(a.loose, b.loose)
    both = made(chosen.residues, chosen.value, chosen.size)._replace(origin=origin, loose=loose)
    both = both._replace(value=np.where(a.varies | b.varies, np.nan, both.value))
    one_infinite = np.isinf(a.value) | np.isinf(b.value)
    both = both._replace(value=np.where(one_infinite, chosen.value, both.value))
    return both.noted(place, ~one_infinite)


def _by_magnitude(greater: bool) -> Binary:
    def chosen(a: Elements, b: Elements, place: int) -> Elements:
        x, y = np.abs(keys(a)), np.abs(keys(b))
        return _extreme(a, b, x > y if greater else x < y, place)

    return chosen


def _same(a: Elements, b: Elements) -> Mask:
    equal: Mask = (a.residues[TOP] == b.residues[TOP]) & (np.isinf(a.value) == np.isinf(b.value))
    return equal


def _compared(compare: Callable[[Elements, Elements], Mask]) -> Binary:
    return lambda a, b, place: truth(compare(a, b), place, a, b)


def _combined(combine: np.ufunc) -> Binary:
    return lambda a, b, place: truth(combine(is_true(a), is_true(b)), place, a, b)


def _power(a: Elements, b: Elements, place: int) -> Elements:
    quarters = np.unique(b.value) * _QUARTERS
    if quarters.size != 1 or not float(quarters[0]).is_integer() or abs(quarters[0]) > _MOST:
        return exp(multiply(log(a, place), b), place)
    base, count = (a if quarters[0] >= 0 else invert(a, place)), abs(int(quarters[0]))
    unit = _QUARTERS
    while count % unit:
        base, unit = root(base, place), unit // 2
    result = constant(np.ones((1, 1))) if not count else base
    for _ in range(count // unit - 1):
        result = multiply(result, base, place)
    return result


def _unary(function: Function) -> Binary:
    return lambda a, b, place: function(a, place)


OPERATORS: Mapping[str, Binary] = {
    "add": add,
    "subtract": lambda a, b, place: add(a, negative(b), place),
    "multiply": multiply,
    "maximum": maximum,
    "minimum": minimum,
    "abs_max": _by_magnitude(True),
    "abs_min": _by_magnitude(False),
    "logical_and": _combined(np.logical_and),
    "logical_or": _combined(np.logical_or),
    "logical_xor": _combined(np.logical_xor),
    "equal": _compared(_same),
    "not_equal": _compared(lambda a, b: ~_same(a, b)),
    "greater_equal": _compared(lambda a, b: (keys(a) >= keys(b)) | _same(a, b)),
    "greater": _compared(lambda a, b: (keys(a) > keys(b)) & ~_same(a, b)),
    "less_equal": _compared(lambda a, b: (keys(a) <= keys(b)) | _same(a, b)),
    "less": _compared(lambda a, b: (keys(a) < keys(b)) & ~_same(a, b)),
    "power": _power,
    "logical_not": lambda a, b, place: truth(~is_true(a), place, a),
    "bypass": lambda a, b, place: a,
    **{name: _unary(FUNCTIONS[name]) for name in FUNCTIONS if name in ALU},
}


def reduction(op: str, rows: Elements, place: int) -> Elements | None:
    """Return the reduction of each row of (P, N), or None if the field does not cover it."""
    if op in ("add", "average"):
        total = elements.total(rows, place)
        count = constant(np.full((1,), float(max(rows.value.shape[-1], 1))))
        return multiply(total, invert(count), place) if op == "average" else total
    if op in ("maximum", "minimum"):
        return elements.greatest(rows, place, 1 if op == "maximum" else -1)
    if op not in OPERATORS:
        return None
    columns = [rows.at(np.s_[..., i]) for i in range(rows.value.shape[-1])]
    result = columns[0]
    for column in columns[1:]:
        result = OPERATORS[op](result, column, place)
    return result
