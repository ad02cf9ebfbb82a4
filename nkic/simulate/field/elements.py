"""Values over the field: numbers modulo the three primes, with what is known of each.

Arithmetic is exact. Comparisons follow a random order: it agrees with the true one among constants,
is reversed by negation, and has products of two positive or two negative numbers, and exponentials,
as positive. What holds in every such order holds in the true one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nkic.simulate.field import modular
from nkic.simulate.field.modular import LEVELS, TOP, Integers, Mask, reduced

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
        """Return bounds on elements of both tiles."""
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
        """Return the elements at an index of NumPy's."""
        return self.moved(lambda x: x[index])

    def spread(self, shape: tuple[int, ...]) -> Elements:
        """Return the elements broadcast to a shape."""
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
    """Return elements with the notes of their sources."""
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
    result = made(modular.constants(usual, bits), numbers, Size())
    return result.undecided(NOWHERE, np.isnan(numbers))


def variables(state: np.random.Generator, shape: tuple[int, ...]) -> Elements:
    """Return random elements: inputs."""
    residues = np.stack([state.integers(0, prime, shape) for prime in modular.PRIMES])
    return made(residues, np.full(shape, np.nan), Size(1.0))


def choose(mask: Mask, a: Elements, b: Elements) -> Elements:
    """Return a where the mask is set, else b."""
    return Elements(
        np.where(mask, a.residues, b.residues),
        np.where(mask, a.value, b.value),
        np.where(mask, a.origin, b.origin),
        np.where(mask, a.loose, b.loose),
        a.size.joined(b.size),
    )


def join(parts: list[Elements], axis: int) -> Elements:
    """Return the parts side by side."""
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
    result = made(modular.inverse(a.residues), value, size, a)
    zero = a.varies & (a.residues[TOP] == 0)
    return result.undecided(place, zero)


def total(a: Elements, place: int = 0) -> Elements:
    """Return the sums of the rows of (P, N)."""
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
        modular.product(left.residues, right.residues),
        values,
        size.sums(count),
        column,
        _rows(right, 0),
    )
    infinite = _any(np.isinf(left.value))[:, None] | _any(np.isinf(right.value))
    return result.undecided(place, infinite)


def _any(mask: Mask) -> Mask:
    """Return where any row is set."""
    found: Mask = np.any(mask, axis=0)
    return found


def _is_identity(a: Elements) -> bool:
    rows, columns = a.value.shape
    return rows == columns and bool(np.array_equal(a.value, np.eye(rows)))


# ---- order ----


def keys(a: Elements) -> Doubles:
    """Return the places of elements in the random order; constants have their own."""
    if not a.varies.any():
        return a.value
    top, prime = a.residues[TOP], modular.PRIMES[TOP]
    size = modular.hashed("order", np.minimum(top, prime - top)[None])[TOP] / prime
    found: Doubles = modular.signs(a.residues) * 2.0 ** (24 * size - 12)
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
    """Return where elements are not zero."""
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
