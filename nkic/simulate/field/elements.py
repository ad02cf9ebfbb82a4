"""Values over the field: numbers modulo the three primes, with what is known of each.

Arithmetic is exact. Comparisons and functions are in `functions`.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
    result = made(residues, a.value.sum(axis=-1), a.size.sums(a.value.shape[-1]), rows_of(a))
    return result.undecided(place, np.isinf(a.value).any(axis=-1))


def rows_of(a: Elements, axis: int = -1) -> Elements:
    """Return elements with the notes of whole rows."""
    return a._replace(origin=a.origin.max(axis=axis), loose=a.loose.max(axis=axis))


def matmul(left: Elements, right: Elements, place: int = 0) -> Elements:
    """Return left.T @ right. An identity matrix moves the elements of the other operand."""
    for one, other, turned in ((right, left, True), (left, right, False)):
        if is_identity(one):
            return other.moved(np.transpose) if turned else other
    count, size = left.value.shape[0], left.size.product(right.size)
    a, b = (np.where(np.isfinite(x.value), x.value, 0.0) for x in (left, right))
    varies = _any(left.varies)[:, None] | _any(right.varies)
    column = left._replace(
        origin=left.origin.max(axis=0)[:, None], loose=left.loose.max(axis=0)[:, None]
    )
    values = np.where(varies, np.nan, a.T @ b)
    result = made(
        product(left.residues, right.residues), values, size.sums(count), column, rows_of(right, 0)
    )
    infinite = _any(np.isinf(left.value))[:, None] | _any(np.isinf(right.value))
    return result.undecided(place, infinite)


def _any(mask: Mask) -> Mask:
    found: Mask = np.any(mask, axis=0)
    return found


def is_identity(a: Elements) -> bool:
    rows, columns = a.value.shape
    return rows == columns and bool(np.array_equal(a.value, np.eye(rows)))
