"""Values over the field: numbers modulo the three primes, with what is known of each.

Arithmetic is exact. Comparisons follow a random order: it agrees with the true one among constants,
is reversed by negation, and has products of two positive or two negative numbers, and exponentials,
as positive. What holds in every such order holds in the true one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache
from math import isqrt, pi, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nkic.machine.operators import ALU
from nkic.simulate.numerics.elementwise import FUNCTIONS as NUMERIC

# ---- Exact arithmetic modulo three primes, element by element -----------------------------------
# The primes are a chain, each twice the one before plus 1: p, 2 p + 1, 4 p + 3. So the numbers
# modulo one prime are exponents of the next (docs/equality.md). Each is -1 modulo 8, 3, 5, 7, 11,
# 13 and 17, which makes these small primes squares, and -1 none: a number's being a square or not
# behaves like its sign. Arrays have the level, 0 to 2, as their first axis.

Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
_CHAIN = 392_071_680
PRIMES = tuple((_CHAIN << level) - 1 for level in range(3))
LEVELS = len(PRIMES)
TOP = LEVELS - 1
BITS = 30.5  # log2 of the last prime
_WINDOW = 11  # bits of an exponent that one table covers
_OFF = 5  # the factor of the root of a number that has none, which makes sqrt(-x) differ
_SMALLEST = 64  # inverses below this are computed one by one


def moduli(dimensions: int) -> Integers:
    """Return the primes as an array that broadcasts over `dimensions` axes after the first."""
    return np.array(PRIMES, np.int64).reshape(-1, *(1,) * dimensions)


def reduced(values: Integers) -> Integers:
    """Return the residues of integers that have a level as their first axis."""
    found: Integers = values % moduli(values.ndim - 1)
    return found


def power(base: Integers, exponent: int, prime: int) -> Integers:
    result, square = np.ones_like(base), base
    while exponent:
        if exponent & 1:
            result = result * square % prime
        exponent >>= 1
        if exponent:
            square = square * square % prime
    return result


def inverse(values: Integers) -> Integers:
    """Return 1/x at all levels; that of 0 is 0."""
    rows = []
    for row, prime in zip(values, PRIMES, strict=True):
        flat = np.where(row == 0, 1, row).reshape(-1)
        rows.append(np.where(row == 0, 0, _inverse(flat, prime).reshape(row.shape)))
    return np.stack(rows)


def _inverse(flat: Integers, prime: int) -> Integers:
    """Return inverses by pairs: 1/a = b/(a b)."""
    if flat.size <= _SMALLEST:
        return power(flat, prime - 2, prime)
    half = flat.size // 2
    a, b, rest = flat[:half], flat[half : 2 * half], flat[2 * half :]
    both = _inverse(np.concatenate([a * b % prime, rest]), prime)
    product = both[:half]
    return np.concatenate([product * b % prime, product * a % prime, both[half:]])


def roots(values: Integers) -> tuple[Integers, Mask]:
    """Return square roots, and where the number at the last level has none.

    They are multiplicative, and the root of a negative constant differs from that of a positive
    one.
    """
    rows, lacking = [], np.zeros(values.shape[1:], np.bool_)
    for row, prime in zip(values, PRIMES, strict=True):
        root = power(row, (prime + 1) // 4, prime)
        lacking = root * root % prime != row
        rows.append(np.where(lacking, root * _OFF % prime, root))
    return np.stack(rows), lacking


def signs(values: Integers) -> Integers:
    """Return 1 for squares at the last level, -1 for others, 0 for 0."""
    power_of = power(values[TOP], (PRIMES[TOP] - 1) // 2, PRIMES[TOP])
    found: Integers = np.where(power_of > 1, -1, power_of)
    return found


@lru_cache(maxsize=4)
def _tables(level: int) -> Integers:
    """Return the powers of the generator of the exponentials, by 11 bits of the exponent."""
    prime, base, tables = PRIMES[level], 4, []  # 4, a square, has the order of the prime before
    for _ in range(3):
        table = np.ones(1 << _WINDOW, np.int64)
        for i in range(1, 1 << _WINDOW):
            table[i] = int(table[i - 1]) * base % prime
        tables.append(table)
        base = int(table[-1]) * base % prime
    return np.stack(tables)


def exponentials(values: Integers) -> Integers:
    """Return exp at all levels: the lowest has no axiom but exp(0) = 1."""
    rows, mask = [hashed("exp", values)[0]], (1 << _WINDOW) - 1
    for level in range(1, LEVELS):
        exponent, tables, prime = values[level - 1], _tables(level), PRIMES[level]
        low = tables[0][exponent & mask] * tables[1][exponent >> _WINDOW & mask] % prime
        rows.append(low * tables[2][exponent >> 2 * _WINDOW] % prime)
    zero = ~values.any(axis=0)
    found: Integers = np.where(zero, 1, np.stack(rows))
    return found


def product(left: Integers, right: Integers) -> Integers:
    """Return left.T @ right at all levels, in float64: halves of 16 bits make sums exact."""
    rows = []
    for a, b, prime in zip(left, right, PRIMES, strict=True):
        a_high, a_low, b_high, b_low = (
            x.astype(np.float64) for x in (a.T >> 16, a.T & 0xFFFF, b >> 16, b & 0xFFFF)
        )
        high, low = a_high @ b_high, a_low @ b_low
        middle = (a_high + a_low) @ (b_high + b_low) - high - low
        high, middle, low = (x.astype(np.int64) % prime for x in (high, middle, low))
        rows.append(((high * 65536 + middle) % prime * 65536 + low) % prime)
    return np.stack(rows)


def hashed(name: str, values: Integers) -> Integers:
    """Return a random function of elements, keyed by its name."""
    key = np.uint64(_seed(name))
    mixed = np.full(values.shape[1:], key)
    for row in values:
        mixed = _mix(mixed ^ row.astype(np.uint64))
    rows = [_mix(mixed + np.uint64(level)) % np.uint64(p) for level, p in enumerate(PRIMES)]
    return np.stack(rows).astype(np.int64)


def _seed(name: str) -> int:
    seed = 0
    for byte in name.encode():
        seed = (seed * 257 + byte + 1) % (1 << 61)
    return seed


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return well-mixed bits (splitmix64)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def constants(values: NDArray[np.float64], bits: int = 24) -> Integers:
    """Return finite numbers of `bits` significant bits as elements.

    A number that is a simple fraction rounded, or the root of one, counts as that: the float
    nearest to 1/3 as 1/3. Any other is exactly itself.
    """
    whole = (values == np.floor(values)) & (np.abs(values) < 2.0**53)
    out: Integers = np.where(whole, values, 0).astype(np.int64) % moduli(values.ndim)
    if not whole.all():
        unique, places = np.unique(values[~whole], return_inverse=True)
        found = np.array([_constant(float(v), bits) for v in unique], np.int64)
        out[:, ~whole] = found[places.reshape(-1)].T
    return out


@lru_cache(maxsize=65536)
def _constant(value: float, bits: int) -> tuple[int, ...]:
    exact = Fraction(value)
    simple = _simplest(exact, bits)
    if simple is not None:
        return _residues(simple)
    square = _simplest(exact * exact, bits - 1)
    if square is not None:
        found = np.array(_residues(square), np.int64).reshape(-1, 1)
        root, lacking = roots(found)
        if not lacking.any():
            return tuple(int(r) for r in reduced(root * (1 if value > 0 else -1))[:, 0])
    return _residues(exact)


def _simplest(exact: Fraction, bits: int) -> Fraction | None:
    """Return the fraction of few digits that rounds to the number, if there is one."""
    limit = 1 << max(bits - 3, 4)
    denominator = (
        isqrt(limit) if abs(exact) >= 1 else int(min(limit, isqrt(int(limit / abs(exact)))))
    )
    near = exact.limit_denominator(max(denominator, 1))
    is_near = abs(near - exact) <= abs(exact) / (1 << bits)
    return near if is_near and abs(near.numerator) * near.denominator <= limit else None


def _residues(fraction: Fraction) -> tuple[int, ...]:
    return tuple(fraction.numerator * pow(fraction.denominator, -1, p) % p for p in PRIMES)


# --------------------------------------------------------------------------------------------------

Doubles = NDArray[np.float64]
Notes = NDArray[np.int32]
NOWHERE = 1 << 30  # the place of what is undecided by no line
INFINITE = 1e30  # constants of this size stand for infinity, as those of masks do


class Size(NamedTuple):
    """Bounds on all elements of a tile: degrees of numerator and denominator as polynomials in the
    inputs and in values of functions, and the exponentials inside each other.
    """

    top: float = 0.0
    bottom: float = 0.0
    depth: int = 0

    def joined(self, other: Size) -> Size:
        top, bottom = max(self.top, other.top), max(self.bottom, other.bottom)
        return Size(top, bottom, max(self.depth, other.depth))

    def sum(self, other: Size) -> Size:
        top = max(self.top + other.bottom, self.bottom + other.top)
        return Size(top, self.bottom + other.bottom, max(self.depth, other.depth))

    def sums(self, count: int) -> Size:
        """Return bounds on the sums of `count` elements."""
        many = max(count - 1, 0) * self.bottom
        return Size(self.top + many, self.bottom + many, self.depth)

    def product(self, other: Size) -> Size:
        bottom = self.bottom + other.bottom
        return Size(self.top + other.top, bottom, max(self.depth, other.depth))


class Elements(NamedTuple):
    """Elements of a tile: arrays of shapes that broadcast, `residues` with the level first.

    `value` is that of a constant, NaN for what depends on an input. `origin` is 1 + the place of an
    instruction that the field has no meaning for, 0 if there was none; `loose` is that of one whose
    meaning lacks some axioms.
    """

    residues: Integers
    value: Doubles
    origin: Notes
    loose: Notes
    size: Size = Size()

    def moved(self, move: Callable[[Any], Any]) -> Elements:
        """Return the elements rearranged by a function of arrays."""
        rows = np.stack([move(row) for row in self.residues])
        return Elements(rows, move(self.value), move(self.origin), move(self.loose), self.size)

    def at(self, index: Any) -> Elements:
        return self.moved(lambda x: x[index])

    def spread(self, shape: tuple[int, ...]) -> Elements:
        return self.moved(lambda x: np.broadcast_to(x, shape))

    @property
    def varies(self) -> Mask:
        """Where elements depend on inputs."""
        return np.isnan(self.value)

    def noted(self, place: int, where: Any = True) -> Elements:
        """Return the elements as loose, where they depend on inputs."""
        lost = self.varies & where & (self.loose == 0)
        return self._replace(loose=np.where(lost, np.int32(place + 1), self.loose))

    def undecided(self, place: int, where: Any = True) -> Elements:
        """Return the elements as undecided."""
        lost = np.asarray(where) & (self.origin == 0)
        return self._replace(origin=np.where(lost, np.int32(place + 1), self.origin))


def made(residues: Integers, value: Doubles, size: Size, *sources: Elements) -> Elements:
    shape = residues.shape[1:]
    origin = loose = np.zeros(shape, np.int32)
    for source in sources:
        origin, loose = np.maximum(origin, source.origin), np.maximum(loose, source.loose)
    value = np.broadcast_to(value, shape)
    infinite: Mask = np.isinf(value)
    if infinite.any():
        ends = reduced(np.where(value > 0, 1, -1)[None])
        residues = np.where(infinite, ends, residues)
    return Elements(residues, value, origin, loose, size)


def constant(values: Any, bits: int = 24) -> Elements:
    """Return constants; very large ones are infinite, and NaN is undecided."""
    numbers = np.array(values, np.float64)
    numbers = np.where(np.abs(numbers) >= INFINITE, np.copysign(np.inf, numbers), numbers)
    usual = np.where(np.isfinite(numbers), numbers, 0.0)
    result = made(constants(usual, bits), numbers, Size())
    return result.undecided(NOWHERE, np.isnan(numbers))


def unknown(shape: tuple[int, ...]) -> Elements:
    return made(np.zeros((LEVELS, *shape), np.int64), np.full(shape, np.nan), Size())


def variables(state: np.random.Generator, shape: tuple[int, ...]) -> Elements:
    """Return random elements: inputs."""
    residues = np.stack([state.integers(0, prime, shape) for prime in PRIMES])
    return made(residues, np.full(shape, np.nan), Size(1.0))


def choose(mask: Mask, a: Elements, b: Elements) -> Elements:
    return Elements(
        np.where(mask, a.residues, b.residues),
        np.where(mask, a.value, b.value),
        np.where(mask, a.origin, b.origin),
        np.where(mask, a.loose, b.loose),
        a.size.joined(b.size),
    )


def join(parts: list[Elements], axis: int) -> Elements:
    size = parts[0].size
    for part in parts[1:]:
        size = size.joined(part.size)
    rows = [
        np.concatenate([part[i] for part in parts], axis=axis + 1 if i == 0 else axis)
        for i in range(4)
    ]
    return Elements(rows[0], rows[1], rows[2], rows[3], size)


# ---- arithmetic ----


def add(a: Elements, b: Elements, place: int = 0) -> Elements:
    """Return a + b. An infinity stays one beside anything that is not the other."""
    with np.errstate(invalid="ignore"):
        value = a.value + b.value
    inf_a, inf_b = np.isinf(a.value), np.isinf(b.value)
    value = np.where(inf_a & ~inf_b, a.value, np.where(inf_b & ~inf_a, b.value, value))
    total = made(reduced(a.residues + b.residues), value, a.size.sum(b.size), a, b)
    return total.undecided(place, inf_a & inf_b & np.isnan(value))


def negative(a: Elements) -> Elements:
    return a._replace(residues=reduced(-a.residues), value=-a.value)


def multiply(a: Elements, b: Elements, place: int = 0) -> Elements:
    with np.errstate(invalid="ignore"):
        value = a.value * b.value
    result = made(reduced(a.residues * b.residues), value, a.size.product(b.size), a, b)
    infinite = np.isinf(a.value) | np.isinf(b.value)
    return result.undecided(place, infinite & np.isnan(value))


def invert(a: Elements, place: int = 0) -> Elements:
    with np.errstate(all="ignore"):
        value = 1 / a.value
    size = Size(a.size.bottom, a.size.top, a.size.depth)
    result = made(inverse(a.residues), value, size, a)
    zero = a.varies & (a.residues[TOP] == 0)
    return result.undecided(place, zero)


def sum_of(a: Elements, place: int = 0) -> Elements:
    residues = reduced(a.residues.sum(axis=-1))
    result = made(residues, a.value.sum(axis=-1), a.size.sums(a.value.shape[-1]), _rows(a))
    return result.undecided(place, np.isinf(a.value).any(axis=-1))


def _rows(a: Elements, axis: int = -1) -> Elements:
    """Return elements with the notes of whole rows."""
    return a._replace(origin=a.origin.max(axis=axis), loose=a.loose.max(axis=axis))


def matmul(left: Elements, right: Elements, place: int = 0) -> Elements:
    """Return left.T @ right. An identity matrix moves the elements of the other operand."""
    for one, other, turned in ((right, left, True), (left, right, False)):
        if _is_identity(one):
            return other.moved(np.transpose) if turned else other
    count, size = left.value.shape[0], left.size.product(right.size)
    a, b = (np.where(np.isfinite(x.value), x.value, 0.0) for x in (left, right))
    varies = _any(left.varies)[:, None] | _any(right.varies)
    column = left._replace(
        origin=left.origin.max(axis=0)[:, None], loose=left.loose.max(axis=0)[:, None]
    )
    values = np.where(varies, np.nan, a.T @ b)
    result = made(
        product(left.residues, right.residues), values, size.sums(count), column, _rows(right, 0)
    )
    infinite = _any(np.isinf(left.value))[:, None] | _any(np.isinf(right.value))
    return result.undecided(place, infinite)


def _any(mask: Mask) -> Mask:
    found: Mask = np.any(mask, axis=0)
    return found


def _is_identity(a: Elements) -> bool:
    rows, columns = a.value.shape
    return rows == columns and bool(np.array_equal(a.value, np.eye(rows)))


# ---- order ----


def keys(a: Elements) -> Doubles:
    """Return the places of elements in a random order, of all sizes; constants have their own."""
    if not a.varies.any():
        return a.value
    top, prime = a.residues[TOP], PRIMES[TOP]
    size = hashed("order", np.minimum(top, prime - top)[None])[TOP] / prime
    found: Doubles = signs(a.residues) * 2.0 ** (253 * size - 126)
    return np.where(a.varies, found, a.value)


def greatest(a: Elements, place: int, sign: int = 1) -> Elements:
    """Return the greatest of each row of (P, N), the least if `sign` is -1."""
    best = (sign * keys(a)).argmax(axis=-1)[..., None]
    chosen = a.moved(lambda x: np.take_along_axis(x, best, axis=-1)[..., 0])
    notes = _rows(a)
    chosen = chosen._replace(origin=notes.origin, loose=np.maximum(notes.loose, chosen.loose))
    mixed = a.varies.any(axis=-1)
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
    value = np.where(mask.varies, np.nan, chosen.value)
    value = np.where(np.isinf(chosen.value), chosen.value, value)
    noted = made(chosen.residues, value, chosen.size, chosen, mask)
    return noted.noted(place, mask.varies)


# ------------------------------------------------------------------------------------------------
# Operators and activation functions on elements of the field, under the names of the machine.
# Functions made of exponentials are written out, so that identities among them hold. Others are
# random functions, each keyed by its name, with the symmetry that it has.

Function = Callable[[Elements, int], Elements]
Binary = Callable[[Elements, Elements, int], Elements]
_QUARTERS = 4  # exponents are multiples of a quarter up to 16, or logarithms are used
_MOST = 64


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
