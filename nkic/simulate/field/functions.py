"""Operators and functions of elements, under the names of the machine, and the order of elements.

Functions made of exponentials are written out, so that identities among them hold. Others are
random functions, each keyed by its name, with the symmetry that it has.

Comparisons follow a random order: it agrees with the true one among constants, is reversed by
negation, and has products of two positive or two negative numbers, and exponentials, as positive.
What holds in every such order holds in the true one; but a trial sees one order alone. So an
`Order` keeps which comparisons went both ways, and there is a trial without an order: maximum is
then the operation of a random group, and a comparison or a selection a random function of what it
reads. What holds there holds in every order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from math import pi, sqrt
from typing import NamedTuple

import numpy as np

from nkic.machine.operators import ALU
from nkic.simulate.field.elements import (
    LEVELS,
    PRIMES,
    TOP,
    Doubles,
    Elements,
    Integers,
    Mask,
    Size,
    add,
    choose,
    constant,
    exponentials,
    hashed,
    invert,
    made,
    matmul,
    multiply,
    negative,
    power,
    reduced,
    roots,
    rows_of,
    signs,
    sum_of,
    unknown,
)
from nkic.simulate.numerics.elementwise import FUNCTIONS as NUMERIC

Function = Callable[[Elements, int], Elements]
Binary = Callable[[Elements, Elements, int], Elements]
_QUARTERS = 4  # exponents are multiples of a quarter up to 16, or logarithms are used
_MOST = 64
_BOUNDS = 16  # constants that elements are spread between
_LOWEST, _HIGHEST = -126.0, 127.0  # exponents of magnitudes
_EXPONENT, _SHIFT = 271_828_183, 314_159_265  # of the group that stands for maximum

# ---- order ----


class Order:
    """How trials order elements, and what they have compared.

    Magnitudes are spread evenly between the constants that earlier trials have met. `seen` has the
    place of each comparison in the order of the program, and which of its elements were found
    true, and which false.
    """

    def __init__(self) -> None:
        self.is_free, self.has_roots = False, False
        self.seen: dict[tuple[int, int], tuple[int, Mask, Mask]] = {}
        self._edges: Doubles = np.array([_LOWEST, _HIGHEST])
        self._met: set[float] = set()
        self._side = self._number = 0

    def begin(self, is_free: bool) -> None:
        """Begin a trial."""
        self.is_free = is_free
        inner = np.log2(sorted(self._met)).clip(_LOWEST, _HIGHEST)
        if inner.size > _BOUNDS:
            inner = inner[np.linspace(0, inner.size - 1, _BOUNDS).astype(int)]
        self._edges = np.array([_LOWEST, *inner, _HIGHEST])

    def follow(self, side: int) -> None:
        """Begin one of the two programs."""
        self._side, self._number = side, 0

    def magnitudes(self, parts: Doubles) -> Doubles:
        """Return the magnitudes that are so far, 0 to 1, from the least to the greatest."""
        places = np.linspace(0.0, 1.0, self._edges.size)
        found: Doubles = 2.0 ** np.interp(parts, places, self._edges)
        return found

    def decided(self, mask: Mask, counts: Mask, place: int, *sources: Elements) -> None:
        """Note the outcome of a comparison, of the elements that count."""
        if self.is_free or not counts.any():
            return
        for source in sources:
            usual = ~source.varies & np.isfinite(source.value) & (source.value != 0)
            self._met.update(np.unique(np.abs(source.value[usual])).tolist())
        yes, no = counts & mask, counts & ~mask
        key = self._side, self._number
        if key in self.seen:
            yes, no = yes | self.seen[key][1], no | self.seen[key][2]
        self.seen[key] = place, yes, no
        self._number += 1

    def one_way(self) -> dict[tuple[int, int], tuple[int, int]]:
        """Return elements that were compared with one outcome alone, and all, by side and place."""
        found: dict[tuple[int, int], tuple[int, int]] = {}
        for (side, _), (place, yes, no) in self.seen.items():
            some, every = found.get((side, place), (0, 0))
            some, every = some + int((yes ^ no).sum()), every + int((yes | no).sum())
            found[side, place] = some, every
        return {key: counts for key, counts in found.items() if counts[0]}


ORDER: ContextVar[Order] = ContextVar("order")


@contextmanager
def ordered(order: Order) -> Iterator[None]:
    token = ORDER.set(order)
    try:
        yield
    finally:
        ORDER.reset(token)


def keys(a: Elements) -> Doubles:
    """Return the places of elements in a random order, of all sizes; constants have their own."""
    if not a.varies.any():
        return a.value
    top, prime = a.residues[TOP], PRIMES[TOP]
    size = hashed("order", np.minimum(top, prime - top)[None])[TOP] / prime
    found: Doubles = signs(a.residues) * ORDER.get().magnitudes(size)
    return np.where(a.varies, found, a.value)


def _merged(rows: Integers, counts: Mask, sign: int) -> Integers:
    """Return the greatest of each row in a random group, the least if `sign` is -1.

    Its operation is that of adding powers: associative and commutative, as maximum is.
    """
    merged = []
    for row, prime in zip(rows, PRIMES, strict=True):
        powers = power((sign * row + _SHIFT) % prime, _EXPONENT, prime)
        total = np.where(counts, powers, 0).sum(axis=-1) % prime
        back = power(total, pow(_EXPONENT, -1, prime - 1), prime)
        merged.append(sign * (back - _SHIFT) % prime)
    return np.stack(merged)


def keyed(name: str, *operands: Integers) -> Integers:
    """Return a random function of several operands."""
    found = hashed(name, operands[0])
    for operand in operands[1:]:
        found = hashed(name, reduced(found + operand))
    return found


def greatest(a: Elements, place: int, sign: int = 1) -> Elements:
    """Return the greatest of each row of (P, N), the least if `sign` is -1."""
    order, mixed = ORDER.get(), np.asarray(a.varies.any(axis=-1))
    best = (sign * keys(a)).argmax(axis=-1)[..., None]
    counts: Mask = ~np.isinf(a.value) & mixed[..., None]
    several: Mask = counts & (counts.sum(axis=-1, keepdims=True) > 1)
    order.decided(np.arange(a.value.shape[-1]) == best, several, place, a)
    chosen = a.moved(lambda x: np.take_along_axis(x, best, axis=-1)[..., 0])
    if order.is_free:
        merged = _merged(a.residues, counts, sign)
        is_infinite = np.isinf(chosen.value)
        chosen = chosen._replace(residues=np.where(mixed & ~is_infinite, merged, chosen.residues))
    notes = rows_of(a)
    chosen = chosen._replace(origin=notes.origin, loose=np.maximum(notes.loose, chosen.loose))
    chosen = chosen._replace(value=np.where(mixed, np.nan, chosen.value))
    return chosen.noted(place)


def is_true(a: Elements) -> Mask:
    truth: Mask = a.residues[TOP] != 0
    return truth


def truth(mask: Mask, place: int, *sources: Elements) -> Elements:
    """Return 0 or 1, with the notes of the sources."""
    varies = np.zeros(mask.shape, np.bool_)
    for source in sources:
        varies = varies | source.varies
    residues = np.broadcast_to(mask.astype(np.int64), (LEVELS, *mask.shape))
    value = np.where(varies, np.nan, mask.astype(np.float64))
    return made(residues, value, Size(1.0), *sources).noted(place)


def selected(mask: Elements, a: Elements, b: Elements, place: int) -> Elements:
    """Return `a` where the mask is true, else `b`, with the notes of the mask."""
    chosen = choose(is_true(mask), a, b)
    if ORDER.get().is_free:
        free = mask.varies & (a.residues != b.residues).any(axis=0)
        random = keyed("select", mask.residues, a.residues, b.residues)
        chosen = chosen._replace(residues=np.where(free, random, chosen.residues))
    value = np.where(mask.varies, np.nan, chosen.value)
    value = np.where(np.isinf(chosen.value), chosen.value, value)
    noted = made(chosen.residues, value, chosen.size, chosen, mask)
    return noted.noted(place, mask.varies)


# ---- functions ----


def _number(value: float) -> Elements:
    return constant(np.full((1, 1), float(np.float32(value))))


def evaluated(name: str, values: Doubles) -> Doubles:
    """Return a function of numbers, by its name."""
    out = np.empty(values.shape, np.float64)
    with np.errstate(all="ignore"):
        NUMERIC[name](values, out, np.zeros(()))  # type: ignore[arg-type]
    return out


def _scaled(x: Elements, factor: float) -> Elements:
    return multiply(x, _number(factor))


def exp(x: Elements, place: int) -> Elements:
    value = evaluated("exp", x.value)
    residues = np.where(np.isneginf(x.value), 0, exponentials(x.residues))
    return made(residues, value, Size(1.0, 0.0, x.size.depth + 1), x)


def root(x: Elements, place: int) -> Elements:
    ORDER.get().has_roots |= bool(x.varies.any())
    residues, lacking = roots(x.residues)
    result = made(residues, evaluated("sqrt", x.value), Size(1.0, 0.0, x.size.depth), x)
    return result.noted(place, lacking)


def _rsqrt(x: Elements, place: int) -> Elements:
    return invert(root(x, place), place)


def log(x: Elements, place: int) -> Elements:
    one = (x.residues == 1).all(axis=0)
    residues = np.where(one, 0, hashed("log", x.residues))
    size = Size(1.0, 0.0, x.size.depth)
    return made(residues, evaluated("log", x.value), size, x).noted(place)


def _odd(name: str) -> Function:
    """Return a random function with f(-x) = -f(x)."""

    def odd(x: Elements, place: int) -> Elements:
        upper = x.residues[TOP] > PRIMES[TOP] // 2
        canonical = np.where(upper, negative(x).residues, x.residues)
        found = np.where(is_true(x), hashed(name, canonical), 0)
        residues = reduced(np.where(upper, -found, found))
        size = Size(1.0, 0.0, x.size.depth)
        return made(residues, evaluated(name, x.value), size, x).noted(place)

    return odd


def absolute(x: Elements, place: int) -> Elements:
    return maximum(x, negative(x), place)


def sign(x: Elements, place: int) -> Elements:
    zero = _number(0)
    return add(_greater(x, zero, place), negative(_greater(zero, x, place)))


def relu(x: Elements, place: int) -> Elements:
    return maximum(x, _number(0), place)


def prelu(x: Elements, slope: Elements, place: int) -> Elements:
    return selected(_greater(x, _number(0), place), x, multiply(x, slope, place), place)


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
    return _extreme(a, b, keys(a) >= keys(b), place, 1)


def minimum(a: Elements, b: Elements, place: int) -> Elements:
    return _extreme(a, b, keys(a) <= keys(b), place, -1)


def _extreme(a: Elements, b: Elements, first: Mask, place: int, sign: int) -> Elements:
    """Return the choice, loose unless the other operand is infinite; `sign` 0 is by magnitude."""
    order, chosen = ORDER.get(), choose(first, a, b)
    one_infinite = np.isinf(a.value) | np.isinf(b.value)
    counts = (a.varies | b.varies) & ~one_infinite
    order.decided(first, counts, place, a, b)
    if order.is_free:
        sides = np.stack(np.broadcast_arrays(a.residues, b.residues), axis=-1)
        free = (
            _merged(sides, np.ones(sides.shape[1:], np.bool_), sign)
            if sign
            else keyed("by magnitude", a.residues, b.residues, chosen.residues)
        )
        chosen = chosen._replace(residues=np.where(counts, free, chosen.residues))
    origin, loose = np.maximum(a.origin, b.origin), np.maximum(a.loose, b.loose)
    both = made(chosen.residues, chosen.value, chosen.size)._replace(origin=origin, loose=loose)
    both = both._replace(value=np.where(a.varies | b.varies, np.nan, both.value))
    both = both._replace(value=np.where(one_infinite, chosen.value, both.value))
    return both.noted(place, ~one_infinite)


def _by_magnitude(greater: bool) -> Binary:
    def chosen(a: Elements, b: Elements, place: int) -> Elements:
        x, y = np.abs(keys(a)), np.abs(keys(b))
        return _extreme(a, b, x > y if greater else x < y, place, 0)

    return chosen


def _same(a: Elements, b: Elements) -> Mask:
    equal: Mask = (a.residues[TOP] == b.residues[TOP]) & (np.isinf(a.value) == np.isinf(b.value))
    return equal


def _greater(a: Elements, b: Elements, place: int, or_same: bool = False) -> Elements:
    """Return where a > b: without an order a random function of a - b, which -x makes 1 less it."""
    order, above, same = ORDER.get(), keys(a) > keys(b), _same(a, b)
    found = truth(above | same if or_same else above & ~same, place, a, b)
    counts = found.varies & ~same & ~np.isinf(a.value) & ~np.isinf(b.value)
    order.decided(above, counts, place, a, b)
    if not order.is_free:
        return found
    off = reduced(a.residues - b.residues)
    back = reduced(-off)
    upper = off[TOP] > PRIMES[TOP] // 2
    one = hashed("greater", np.where(upper, back, off))
    free = np.where(upper, one, reduced(1 - one))
    ties = hashed("greater", off) if not or_same else reduced(1 - hashed("greater", back))
    free = np.where(_may_tie(a, b), ties, free)
    return found._replace(residues=np.where(counts, free, found.residues))


def _may_tie(a: Elements, b: Elements) -> Mask:
    """Return where one of two elements may be a choice, which equals what it was chosen from."""
    return np.asarray((a.loose > 0) | (b.loose > 0))


def _compared(is_same: bool) -> Binary:
    """Return whether a = b: without an order a random function of ±(a - b) if they may tie."""

    def compared(a: Elements, b: Elements, place: int) -> Elements:
        same = _same(a, b)
        found = truth(same == is_same, place, a, b)
        if not ORDER.get().is_free:
            return found
        counts = found.varies & ~same & ~np.isinf(a.value) & ~np.isinf(b.value) & _may_tie(a, b)
        off = reduced(a.residues - b.residues)
        one = hashed("equal", np.where(off[TOP] > PRIMES[TOP] // 2, reduced(-off), off))
        free = one if is_same else reduced(1 - one)
        return found._replace(residues=np.where(counts, free, found.residues))

    return compared


def _combined(name: str, combine: Callable[[Mask, Mask], Mask]) -> Binary:
    def combined(a: Elements, b: Elements, place: int) -> Elements:
        found = truth(combine(is_true(a), is_true(b)), place, a, b)
        if not ORDER.get().is_free:
            return found
        sides = reduced(a.residues + b.residues), reduced(a.residues * b.residues)
        free = np.where(found.varies, keyed(name, *sides), found.residues)
        return found._replace(residues=free)

    return combined


def _neither(a: Mask, b: Mask) -> Mask:
    return ~a & ~b


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
    "logical_and": _combined("and", np.logical_and),
    "logical_or": _combined("or", np.logical_or),
    "logical_xor": _combined("xor", np.logical_xor),
    "equal": _compared(True),
    "not_equal": _compared(False),
    "greater_equal": lambda a, b, place: _greater(a, b, place, True),
    "greater": _greater,
    "less_equal": lambda a, b, place: _greater(b, a, place, True),
    "less": lambda a, b, place: _greater(b, a, place),
    "power": _power,
    "logical_not": lambda a, b, place: _combined("not", _neither)(a, a, place),
    "bypass": lambda a, b, place: a,
    **{name: _unary(FUNCTIONS[name]) for name in FUNCTIONS if name in ALU},
}


def reduction(op: str, rows: Elements, place: int) -> Elements | None:
    """Return the reduction of each row of (P, N), or None if the field does not cover it."""
    if op in ("add", "average"):
        total = sum_of(rows, place)
        count = constant(np.full((1,), float(max(rows.value.shape[-1], 1))))
        return multiply(total, invert(count), place) if op == "average" else total
    if op in ("maximum", "minimum"):
        return greatest(rows, place, 1 if op == "maximum" else -1)
    if op not in OPERATORS:
        return None
    columns = [rows.at(np.s_[..., i]) for i in range(rows.value.shape[-1])]
    result = columns[0]
    for column in columns[1:]:
        result = OPERATORS[op](result, column, place)
    return result


# ------------------------------------------------------------------------------------------------


class Algebra(NamedTuple):
    """What rules compute with. `residues` of another algebra are whatever numbers it keeps."""

    constant: Callable[..., Elements]
    unknown: Callable[[tuple[int, ...]], Elements]
    add: Callable[..., Elements]
    multiply: Callable[..., Elements]
    negative: Callable[[Elements], Elements]
    invert: Callable[..., Elements]
    exp: Function
    matmul: Callable[[Elements, Elements, int], Elements]
    sum_of: Callable[..., Elements]
    selected: Callable[[Elements, Elements, Elements, int], Elements]
    prelu: Binary
    reduction: Callable[[str, Elements, int], Elements | None]
    functions: Mapping[str, Function]
    operators: Mapping[str, Binary]


FIELD = Algebra(
    *(constant, unknown, add, multiply, negative, invert, exp, matmul, sum_of, selected, prelu),
    *(reduction, FUNCTIONS, OPERATORS),
)
