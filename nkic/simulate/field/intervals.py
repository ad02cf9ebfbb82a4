"""Up to which size of inputs a program is proven to stay finite: intervals of all its elements.

Inputs are a box. Each element is an interval that holds whatever the program computes for inputs in
the box, rounded outward by what its types round. What an ordinary run shows to be constant is
taken as it is.

Intervals alone cannot see that x - max(x) is at most 0, or that exp(x - max(x)) sums to at least 1.
So an element also has

    base, factor, error   it is factor times the element `base`, give or take the error
    kind, top, rest, slack   with the elements `top` <= `rest`: wherever both are equal,
                          a DIFFERENCE lies within the slack, and a FLOOR is at least exp(-slack)

and each maximum is noted above its members. The difference of an element and of what is above it is
at most 0; its exponential is a floor; and a sum of floors over all members of a maximum, at least
one of which is equal to it, is at least exp(-slack). What rounds to a narrower type is noted with
its source and how far from it it may be, so that x - bfloat16(x) is small.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from nkic.artifact.records import Executable, InstructionRecord, PatternRecord
from nkic.machine.dtypes import FLOAT32
from nkic.machine.operators import ACTIVATIONS, ALU
from nkic.machine.targets import Engine, Target
from nkic.simulate.beside import DST, SRC, Resolved
from nkic.simulate.field.domain import line_of, named
from nkic.simulate.field.elements import Doubles, Elements, Mask, choose, join
from nkic.simulate.field.following import Field
from nkic.simulate.field.functions import Algebra, Binary, Function, evaluated
from nkic.simulate.field.rules import Results, Store, record
from nkic.simulate.memory import Memory
from nkic.simulate.numerics.elementwise import FUNCTIONS as NUMERIC
from nkic.simulate.outcome import RunOptions
from nkic.simulate.plans import Step
from nkic.simulate.stage import Arrays, simulate_ranks
from nkic.simulate.streams import nothing

LOW, HIGH, BASE, FACTOR, ERROR, KIND, TOP, REST, SLACK = range(9)
COUNT = 9
RECORD = record(np.float64, COUNT)
DIFFERENCE, FLOOR = 1.0, 2.0
UNIT, TINY = 2.0**-23, 2.0**-126  # of float32: a unit in the last place; what may become 0
GREATEST = (2 - 2.0**-23) * 2.0**127
APPROXIMATE = 2.0**-16  # relative, of activation functions
_HOPS = 8
_LEAST_SIZE, _MOST = -20.0, 127.9999  # exponents of sizes that are tried


def _outward(low: Doubles, high: Doubles, unit: float = UNIT, tiny: float = TINY) -> Any:
    """Return bounds of results that are rounded. Rounding keeps the sign."""
    low = np.where(np.isnan(low), -np.inf, low)
    high = np.where(np.isnan(high), np.inf, high)
    sizes = (np.where(np.isfinite(end), np.abs(end), 0.0) for end in (low, high))
    reach = [size * unit + tiny for size in sizes]
    below, above = low - reach[0], high + reach[1]
    low = np.where(low >= 0, np.maximum(below, 0), below)
    high = np.where(high <= 0, np.minimum(above, 0), above)
    return low, high


def interval(low: Doubles, high: Doubles, *sources: Elements) -> Elements:
    """Return results of float32 in bounds; constants if all sources are."""
    low, high = np.broadcast_arrays(low, high)
    certain = (low == high) & np.isinf(low)  # an infinity that the program has as a constant
    low = np.where((high > GREATEST) & ~certain, np.minimum(low, GREATEST), low)
    high = np.where((low < -GREATEST) & ~certain, np.maximum(high, -GREATEST), high)
    low = np.where((low < -GREATEST) & ~certain, -np.inf, low)
    high = np.where((high > GREATEST) & ~certain, np.inf, high)
    levels = np.zeros((COUNT, *low.shape))
    levels[LOW], levels[HIGH] = low, high
    varies = np.zeros(low.shape, np.bool_)
    for source in sources:
        varies = varies | source.varies
    notes = np.zeros(low.shape, np.int32)
    return Elements(levels, np.where(varies, np.nan, low), notes, notes)


def rounded(low: Doubles, high: Doubles, *sources: Elements) -> Elements:
    return interval(*_outward(low, high), *sources)


def constant(values: Any, bits: int = 24) -> Elements:
    numbers = np.array(values, np.float64)
    wrong = np.isnan(numbers)
    result = interval(np.where(wrong, -np.inf, numbers), np.where(wrong, np.inf, numbers))
    return result._replace(value=numbers)


def unknown(shape: tuple[int, ...]) -> Elements:
    result = interval(np.full(shape, -np.inf), np.full(shape, np.inf))
    return result._replace(value=np.full(shape, np.nan))


def _is_all(x: Elements, value: float, other: Elements) -> bool:
    """Return whether all of x, which spreads over the other, is a number."""
    shape = other.value.shape
    return bool((x.value == value).all()) and np.broadcast_shapes(x.value.shape, shape) == shape


def _with(x: Elements, where: Mask, **levels: Any) -> Elements:
    """Return elements with other levels where a mask is true."""
    rows = x.residues.copy()
    for name, values in levels.items():
        number = globals()[name]
        rows[number] = np.where(where, values, rows[number])
    return x._replace(residues=rows)


def _magnitude(x: Elements) -> Doubles:
    found: Doubles = np.maximum(np.abs(x.residues[LOW]), np.abs(x.residues[HIGH]))
    return found


class Facts:
    """The algebra of intervals, and what is known of each base: which maximum is above it, how many
    members it has as a maximum, and of which base it is the rounding, within which distance.
    """

    def __init__(self) -> None:
        self.above, self.members, self.source, self.spread = self.known = np.zeros((4, 1 << 16))
        self.next = 1
        functions: dict[str, Function] = {
            name: partial(_ranged, name) for name in NUMERIC if name != "prelu"
        }
        functions |= {"copy": lambda x, place: x, "square": lambda x, place: self.multiply(x, x)}
        functions |= {"exp": self.exp, "reciprocal": _inverse, "abs": _absolute, "relu": _relu}
        operators: dict[str, Binary] = {
            "add": self.add,
            "subtract": lambda a, b, place: self.add(a, turn(b), place),
            "multiply": self.multiply,
            "maximum": lambda a, b, place: self.greater(a, b, 1),
            "minimum": lambda a, b, place: self.greater(a, b, -1),
            "power": self.power,
            "bypass": lambda a, b, place: a,
            "abs_max": _either,
            "abs_min": _either,
        }
        operators |= {name: partial(_truth, name) for name in _COMPARED}
        operators |= {n: _unary(functions[n]) for n in functions if n in ALU and n not in operators}
        operators["logical_not"] = partial(_truth, "logical_not")
        self.operators = operators
        self.algebra = Algebra(
            *(constant, unknown, self.add, self.multiply, turn, _inverse, self.exp, self.matmul),
            *(self.sum_of, _selected, _prelu, self.reduction, functions, operators),
        )

    def fresh(self, shape: tuple[int, ...]) -> Doubles:
        """Return new bases."""
        count = int(np.prod(shape))
        first, self.next = self.next, self.next + count
        while self.next > len(self.above):
            self.known = np.concatenate([self.known, np.zeros(self.known.shape)], axis=1)
            self.above, self.members, self.source, self.spread = self.known
        return np.arange(first, self.next, dtype=np.float64).reshape(shape)

    def is_below(self, lower: Doubles, upper: Doubles) -> Mask:
        """Return where a base is known to be at most another."""
        current = np.broadcast_to(lower, np.broadcast_shapes(lower.shape, upper.shape))
        found = np.zeros(current.shape, np.bool_)
        for _ in range(_HOPS):
            found |= (current == upper) & (current > 0)
            current = self.above[current.astype(np.int64)]
            if not current.any():
                break
        return found

    # ---- arithmetic ----

    def add(self, a: Elements, b: Elements, place: int = 0) -> Elements:
        for one, other in ((a, b), (b, a)):
            if _is_all(one, 0.0, other):
                return other
        x, y = a.residues, b.residues
        with np.errstate(invalid="ignore"):
            result = rounded(x[LOW] + y[LOW], x[HIGH] + y[HIGH], a, b)
        return self._floors(a, b, self._related(a, b, result))

    def _related(self, a: Elements, b: Elements, result: Elements) -> Elements:
        """Return a sum with what is known of it as a difference of related elements."""
        x, y = a.residues, b.residues
        left = np.abs(x[FACTOR] + y[FACTOR])
        related = (x[BASE] > 0) & (y[BASE] > 0) & (x[FACTOR] * y[FACTOR] < 0)
        related = related & (left <= 1e-6 * np.abs(x[FACTOR]))
        if not related.any():
            return result
        with np.errstate(all="ignore"):
            size = (_magnitude(a) + x[ERROR]) / np.maximum(np.abs(x[FACTOR]), 1e-300)
            slack = x[ERROR] + y[ERROR] + np.where(left > 0, left * size, 0.0)
        slack = np.where(np.isnan(slack), np.inf, slack * (1 + UNIT) + TINY * (slack > 0))
        first = x[FACTOR] > 0
        top, rest = np.where(first, x[BASE], y[BASE]), np.where(first, y[BASE], x[BASE])
        below = related & self.is_below(top, rest)
        over = related & self.is_below(rest, top)
        rows = result.residues
        high, low = np.minimum(rows[HIGH], slack), np.maximum(rows[LOW], -slack)
        high = np.where(slack < rows[LOW], rows[HIGH], high)
        result = _with(result, below, HIGH=high, KIND=DIFFERENCE, TOP=top, REST=rest, SLACK=slack)
        result = _with(result, over, LOW=low)
        with np.errstate(invalid="ignore"):
            reach = (slack + np.abs(x[FACTOR]) * self._apart(top, rest)) * (1 + 2 * UNIT) + TINY
        rows = result.residues
        high, low = np.minimum(rows[HIGH], reach), np.maximum(rows[LOW], -reach)
        return _with(result, related & (low <= high), LOW=low, HIGH=high)

    def _apart(self, one: Doubles, other: Doubles) -> Doubles:
        """Return how far two bases may be from each other, infinity unless one rounds the other."""
        a, b = (base.astype(np.int64) for base in (one, other))
        found = np.where(self.source[a] == other, self.spread[a], np.inf)
        return np.where(self.source[b] == one, self.spread[b], found)

    def _floors(self, a: Elements, b: Elements, result: Elements) -> Elements:
        """Return a sum as the floor that one of its terms is, or that both are together.

        A sum of terms that are not negative is at least each of them, however it is rounded.
        """
        x, y = a.residues, b.residues
        floors = [(z[KIND] == FLOOR) & (z[LOW] >= 0) for z in (x, y)]
        if not (floors[0].any() or floors[1].any()):
            return result
        for own, z, other in ((floors[0], x, y), (floors[1], y, x)):
            kept = own & (other[LOW] >= 0)
            result = _with(result, kept, KIND=FLOOR, TOP=z[TOP], REST=z[REST], SLACK=z[SLACK])
        shared = self.above[x[TOP].astype(np.int64)]
        both = floors[0] & floors[1] & (x[REST] == y[REST]) & (x[TOP] != y[TOP])
        both = both & (shared == self.above[y[TOP].astype(np.int64)])
        both = both & (self.members[shared.astype(np.int64)] == 2)
        slack = np.maximum(x[SLACK], y[SLACK])
        return self._settled(_with(result, both, TOP=shared, SLACK=slack))

    def _settled(self, x: Elements) -> Elements:
        """Return floors that hold everywhere as bounds."""
        rows = x.residues
        holds = (rows[KIND] == FLOOR) & (rows[TOP] == rows[REST]) & (rows[TOP] > 0)
        if not holds.any():
            return x
        least = np.exp(-np.where(holds, rows[SLACK], np.inf)) * (1 - APPROXIMATE)
        least = np.where(least < TINY, 0.0, least)
        return _with(x, holds, LOW=np.maximum(rows[LOW], np.minimum(least, rows[HIGH])))

    def multiply(self, a: Elements, b: Elements, place: int = 0) -> Elements:
        for one, other in ((a, b), (b, a)):
            if _is_all(one, 1.0, other):
                return other
        x, y = a.residues, b.residues
        with np.errstate(invalid="ignore", over="ignore"):
            corners = [x[i] * y[j] for i in (LOW, HIGH) for j in (LOW, HIGH)]
        low, high = (f.reduce(corners) for f in (np.minimum, np.maximum))
        same = (x[BASE] > 0) & (x[BASE] == y[BASE]) & (x[ERROR] + y[ERROR] == 0)
        same = np.broadcast_to((same & (x[FACTOR] * y[FACTOR] > 0)) | (a is b), low.shape)
        low = np.where(same, np.fmax(low, 0.0), low)
        result = rounded(low, high, a, b)
        floors = (x[KIND] == FLOOR) & (y[KIND] == FLOOR) & (x[LOW] >= 0) & (y[LOW] >= 0)
        for p, q in ((x, y), (y, x)):
            chained = floors & (p[REST] == q[TOP])
            chained = chained & self.is_below(p[TOP], p[REST])
            chained = chained & self.is_below(q[TOP], q[REST])
            slack = p[SLACK] + q[SLACK] + 2 * UNIT
            result = _with(result, chained, KIND=FLOOR, TOP=p[TOP], REST=q[REST], SLACK=slack)
        result = self._scaled(a, b, result) if not _any(b.varies) else result
        return self._scaled(b, a, result) if not _any(a.varies) else result

    def _scaled(self, a: Elements, factor: Elements, result: Elements) -> Elements:
        x, c = a.residues, factor.value
        known = (x[BASE] > 0) & (c != 0) & np.isfinite(c)
        exact = np.abs(np.frexp(np.where(np.isfinite(c), c, 0.0))[0]) == 0.5
        with np.errstate(all="ignore"):
            error = np.abs(c) * x[ERROR] + np.where(exact, 0.0, UNIT * _magnitude(result) + TINY)
        error = np.where(np.isnan(error), np.inf, error)
        result = _with(result, known, BASE=x[BASE], FACTOR=x[FACTOR] * c, ERROR=error)
        kept = (x[KIND] == DIFFERENCE) & (c > 0)
        slack = x[SLACK] * np.abs(c) * (1 + UNIT)
        return _with(result, kept, KIND=DIFFERENCE, TOP=x[TOP], REST=x[REST], SLACK=slack)

    def exp(self, x: Elements, place: int = 0) -> Elements:
        rows, result = x.residues, _ranged("exp", x, place)
        floor = rows[KIND] == DIFFERENCE
        slack = rows[SLACK] + APPROXIMATE
        result = _with(result, floor, KIND=FLOOR, TOP=rows[TOP], REST=rows[REST], SLACK=slack)
        return self._settled(result)

    def power(self, a: Elements, b: Elements, place: int = 0) -> Elements:
        exponents = np.unique(b.value)
        if exponents.size != 1 or np.isnan(exponents[0]):
            return _everything(np.broadcast_shapes(a.value.shape, b.value.shape), a, b)
        exponent, whole = float(exponents[0]), float(exponents[0]).is_integer()
        low, high = a.residues[LOW], a.residues[HIGH]
        with np.errstate(all="ignore"):
            ends = [low**exponent, high**exponent]
        least, most = np.minimum(*ends), np.maximum(*ends)
        if whole and exponent % 2 == 0:
            least = np.where((low < 0) & (high > 0), 0.0, least)
        bad = (low < 0) & (not whole)
        if exponent < 0:
            bad = bad | (low <= 0) & (high >= 0)
        result = interval(*_outward(*_overflown(least, most, a), APPROXIMATE), a)
        return _with(result, bad, LOW=-np.inf, HIGH=np.inf)

    def matmul(self, left: Elements, right: Elements, place: int = 0) -> Elements:
        """Return left.T @ right."""
        for one, other, turns in ((right, left, True), (left, right, False)):
            if np.isinf(other.value).any():  # times 0 they are NaN
                continue
            if np.array_equal(one.value, np.eye(len(one.value))):
                return other.moved(np.transpose) if turns else other
            if (one.value == 1).all():
                sums = self.sum_of(other.moved(np.transpose), place)
                sums = sums.at(np.s_[:, None]) if turns else sums.at(np.s_[None])
                return sums.spread((left.value.shape[1], right.value.shape[1]))
        ends = [(x.residues[LOW], x.residues[HIGH]) for x in (left, right)]
        with np.errstate(all="ignore"):
            (a, r), (b, s) = (((high + low) / 2, (high - low) / 2) for low, high in ends)
            middle = a.T @ b
            reach = np.abs(a).T @ s + r.T @ (np.abs(b) + s)
            size = (np.abs(a) + r).T @ (np.abs(b) + s)
            reach = reach + (left.value.shape[0] + 2) * UNIT * size
            low, high = middle - reach, middle + reach
        least = [(x.residues[LOW] >= 0).all() for x in (left, right)]
        low = np.maximum(low, 0.0) if all(least) else low
        low, high = np.where(size > GREATEST, -np.inf, low), np.where(size > GREATEST, np.inf, high)
        varies = np.any(left.varies, axis=0)[:, None] | np.any(right.varies, axis=0)
        result = interval(*_outward(low, high))
        return result._replace(value=np.where(varies, np.nan, result.value))

    # ---- rows ----

    def sum_of(self, x: Elements, place: int = 0) -> Elements:
        rows, count = x.residues, x.value.shape[-1]
        with np.errstate(invalid="ignore"):
            low, high = rows[LOW].sum(axis=-1), rows[HIGH].sum(axis=-1)
            total = _magnitude(x).sum(axis=-1)
            error = count * UNIT * total
        positive = (rows[LOW] >= 0).all(axis=-1)
        low = np.where(positive, np.maximum(low * (1 - count * UNIT), 0.0), low - error)
        first = x.at(np.s_[..., 0])
        varies = x.varies.any(axis=-1)
        beyond = (total > GREATEST) & np.isfinite(low + high)  # partial sums may overflow
        low, high = np.where(beyond, -np.inf, low), np.where(beyond, np.inf, high + error)
        result = rounded(low, high, first)
        result = result._replace(value=np.where(varies, np.nan, result.value))
        floors = rows[KIND] == FLOOR
        claimed = positive & floors.any(axis=-1)
        if not claimed.any():
            return result
        one = np.take_along_axis(rows, floors.argmax(axis=-1)[None, ..., None], axis=-1)[..., 0]
        member = floors & (rows[REST] == one[REST][..., None])
        top = self._joined(np.where(member, rows[TOP], 0.0), one[REST])
        slack = np.where(member, rows[SLACK], 0.0).max(axis=-1)
        result = _with(result, claimed, KIND=FLOOR, TOP=top, REST=one[REST], SLACK=slack)
        return self._settled(result)

    def _joined(self, tops: Doubles, rests: Doubles) -> Doubles:
        """Return for each row of bases one that is a maximum of some of them: `rests`, if it is."""
        shape, wide = tops.shape[:-1], self.next
        rows = np.arange(int(np.prod(shape))) * wide
        found = np.unique((tops.reshape(len(rows), -1) + rows[:, None]).astype(np.int64))
        while True:
            row, base = found - found % wide, found % wide
            above = self.above[base].astype(np.int64)
            _, group, counts = np.unique(row + above, return_inverse=True, return_counts=True)
            whole = counts[group] == self.members[above]  # of 0, which no base is, never
            if not whole.any():
                break
            found = np.unique(np.where(whole, row + above, found))
        found = found[found % wide > 0]
        result = np.zeros(len(rows))
        result[found // wide] = found % wide
        wanted = rests.reshape(-1)
        has = np.isin(rows + wanted.astype(np.int64), found)
        return np.where(has, wanted, result).reshape(shape)

    def reduction(self, op: str, rows: Elements, place: int) -> Elements | None:
        if op in ("maximum", "minimum"):
            return self.greatest(rows, 1 if op == "maximum" else -1)
        if op in ("add", "average"):
            total, count = self.sum_of(rows, place), max(rows.value.shape[-1], 1)
            share = constant(np.full((1,), 1.0 if op == "add" else 1 / count))
            return self.multiply(total, share)
        if op not in self.operators:
            return None
        result = rows.at(np.s_[..., 0])
        for i in range(1, rows.value.shape[-1]):
            result = self.operators[op](result, rows.at(np.s_[..., i]), place)
        return result

    def greatest(self, x: Elements, sign: int) -> Elements:
        """Return the greatest of each row, the least if `sign` is -1."""
        rows, extreme = x.residues, np.maximum if sign > 0 else np.minimum
        low, high = extreme.reduce(rows[LOW], axis=-1), extreme.reduce(rows[HIGH], axis=-1)
        result = interval(low, high)
        result = result._replace(value=np.where(x.varies.any(axis=-1), np.nan, low))
        near, far = (LOW, HIGH) if sign > 0 else (HIGH, LOW)
        best = np.where(x.varies, sign * rows[near], -np.inf).max(axis=-1)[..., None]
        # a constant that may be the greatest is a member that no sum ever has
        others = (~x.varies & ~(sign * rows[far] <= best)).any(axis=-1)
        factor = np.where(x.varies, rows[FACTOR] * sign, -np.inf).max(axis=-1)
        same = (rows[BASE] > 0) & (rows[FACTOR] * sign == factor[..., None])
        fits = (same | ~x.varies).all(axis=-1) & (factor > 0)
        if not fits.any():
            return result
        base = self.fresh(low.shape)
        within = x.varies & fits[..., None]
        bases = np.sort(np.where(within, rows[BASE], 0.0), axis=-1)
        count = (np.diff(bases, axis=-1, prepend=0.0) != 0).sum(axis=-1)
        self.members[base.astype(np.int64)] = count + others
        places = rows[BASE][within].astype(np.int64)
        self.above[places] = np.broadcast_to(base[..., None], within.shape)[within]
        error = np.where(within, rows[ERROR], 0.0).max(axis=-1)
        return _with(result, fits, BASE=base, FACTOR=factor * sign, ERROR=error)

    def greater(self, a: Elements, b: Elements, sign: int) -> Elements:
        shape = np.broadcast_shapes(a.value.shape, b.value.shape)
        one, other = a.spread(shape), b.spread(shape)
        near, far = (LOW, HIGH) if sign > 0 else (HIGH, LOW)
        first = sign * one.residues[near] >= sign * other.residues[far]
        second = sign * other.residues[near] >= sign * one.residues[far]
        pair = join([one.at(np.s_[..., None]), other.at(np.s_[..., None])], len(shape))
        undecided = ~first & ~second
        result = self.greatest(pair, sign) if undecided.any() else one
        result = choose(second & ~undecided, other, result)
        result = choose(first & ~undecided, one, result)
        varies = one.varies | other.varies
        return result._replace(value=np.where(varies, np.nan, result.residues[LOW]))


def _any(mask: Mask) -> bool:
    return bool(np.any(mask))


def turn(x: Elements) -> Elements:
    """Return -x."""
    rows = x.residues.copy()
    rows[LOW], rows[HIGH], rows[FACTOR] = -x.residues[HIGH], -x.residues[LOW], -x.residues[FACTOR]
    rows[KIND] = 0.0
    return x._replace(residues=rows, value=-x.value)


def _everything(shape: tuple[int, ...], *sources: Elements) -> Elements:
    return interval(np.full(shape, -np.inf), np.full(shape, np.inf), *sources)


# ---- functions ----

# Monotone functions, with -1 for those that fall, and the interval where they are defined.
_MONOTONE: Mapping[str, tuple[int, float]] = {
    **dict.fromkeys(("exp", "arctan", "tanh", "sigmoid", "softplus", "erf", "sign"), (1, -np.inf)),
    **{"sqrt": (1, 0.0), "log": (1, TINY), "rsqrt": (-1, TINY)},
}
_FLAT: Mapping[str, tuple[float, float]] = {  # functions within bounds
    **{"sin": (-1.0, 1.0), "erf_dx": (0.0, 1.13)},
    **dict.fromkeys(("silu_dx", "gelu_dx", "gelu_apprx_sigmoid_dx"), (-0.2, 1.2)),
}
_GATED = {"silu", "mish", "gelu", "gelu_apprx_tanh", "gelu_apprx_sigmoid"}  # x times at most 1
_LEAST = -0.32  # of all gated functions


def _ranged(name: str, x: Elements, place: int = 0) -> Elements:
    low, high = x.residues[LOW], x.residues[HIGH]
    if name in _FLAT:
        least, most = (np.full(low.shape, end) for end in _FLAT[name])
        if name == "sin":  # which is NaN elsewhere
            outside = (low < ACTIVATIONS[name].low) | (high > ACTIVATIONS[name].high)
            least, most = np.where(outside, -np.inf, least), np.where(outside, np.inf, most)
    elif name in _GATED:
        least, most = np.maximum(np.minimum(low, 0.0), _LEAST), np.maximum(high, 0.0)
    elif name in _MONOTONE:
        direction, lowest = _MONOTONE[name]
        least, most = (evaluated(name, end) for end in (low, high)[::direction])
        outside = low < lowest
        least, most = np.where(outside, -np.inf, least), np.where(outside, np.inf, most)
    else:
        return _everything(low.shape, x)
    result = interval(*_outward(*_overflown(least, most, x), APPROXIMATE), x)
    may_be_nan = np.isneginf(low) & np.isposinf(high)
    return _with(result, may_be_nan, LOW=-np.inf, HIGH=np.inf)


def _overflown(low: Doubles, high: Doubles, x: Elements) -> tuple[Doubles, Doubles]:
    """Return bounds of results of x, of which an infinity is none that the program has."""
    finite = np.isfinite(x.residues[[LOW, HIGH]]).any(axis=0)
    low = np.where(finite & np.isposinf(low), GREATEST, low)
    return low, np.where(finite & np.isneginf(high), -GREATEST, high)


def _inverse(x: Elements, place: int = 0) -> Elements:
    low, high = x.residues[LOW], x.residues[HIGH]
    pole = (low <= 0) & (high >= 0)
    with np.errstate(all="ignore"):
        result = rounded(1 / high, 1 / low, x)
    return _with(result, pole, LOW=-np.inf, HIGH=np.inf)


def _absolute(x: Elements, place: int = 0) -> Elements:
    low, high = x.residues[LOW], x.residues[HIGH]
    return interval(np.maximum(np.maximum(low, -high), 0.0), np.maximum(-low, high), x)


def _relu(x: Elements, place: int = 0) -> Elements:
    return interval(np.maximum(x.residues[LOW], 0), np.maximum(x.residues[HIGH], 0), x)


def _hull(a: Elements, b: Elements, *sources: Elements) -> Elements:
    low = np.minimum(a.residues[LOW], b.residues[LOW])
    return interval(low, np.maximum(a.residues[HIGH], b.residues[HIGH]), a, b, *sources)


def _either(a: Elements, b: Elements, place: int) -> Elements:
    return _hull(a, b)


def _selected(mask: Elements, a: Elements, b: Elements, place: int) -> Elements:
    shape = np.broadcast_shapes(mask.value.shape, a.value.shape, b.value.shape)
    known = choose(mask.value != 0, a.spread(shape), b.spread(shape))
    return choose(np.broadcast_to(mask.varies, shape), _hull(a, b, mask).spread(shape), known)


def _prelu(x: Elements, slope: Elements, place: int) -> Elements:
    low, high = x.residues[LOW], x.residues[HIGH]
    with np.errstate(all="ignore"):
        ends = [z * s for z in (low, high) for s in slope.residues[:2]]
    return rounded(
        np.minimum(low, np.minimum.reduce(ends)), np.maximum(high, np.maximum.reduce(ends)), x
    )


_COMPARED: Mapping[str, Callable[[Doubles, Doubles], Any]] = {
    **{"equal": np.equal, "not_equal": np.not_equal, "less": np.less, "greater": np.greater},
    **{"less_equal": np.less_equal, "greater_equal": np.greater_equal},
    **{"logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor},
}


def _truth(name: str, a: Elements, b: Elements, place: int) -> Elements:
    """Return 0 or 1, a constant of constants."""
    if name == "logical_not":
        found = np.asarray(a.value == 0, np.float64)
        varies = a.varies
    else:
        found = np.asarray(_COMPARED[name](a.value, b.value), np.float64)
        varies = a.varies | b.varies
    result = interval(np.where(varies, 0.0, found), np.where(varies, 1.0, found))
    return result._replace(value=np.where(varies, np.nan, found))


def _unary(function: Function) -> Binary:
    return lambda a, b, place: function(a, place)


# ---- A program ----------------------------------------------------------------------------------


class Excluding(Field):
    """Intervals of all elements of a rank; `first` is the first instruction whose results could
    not be proven finite, with the reason.
    """

    def __init__(
        self, executable: Executable, memory: Memory, target: Target, size: float, low: float
    ) -> None:
        self.facts, self.size, self.low = Facts(), size, low
        self.first: tuple[int, str] | None = None
        self.peak = 0.0  # the greatest size of a result, as a share of what its type holds
        names = {each.name: each.name for each in executable.inputs}
        super().__init__(executable, memory, target, names)

    def stored(self) -> Store:
        return Store(self.executable, self.facts.algebra, RECORD)

    def input(self, pattern: PatternRecord, name: str) -> Elements:
        size = self.size * (1 + 2.0**-pattern.dtype.mantissa_bits)  # as the type rounds it
        most = np.full(self.store.shape(pattern), min(size, pattern.dtype.highest))
        box = interval(self.low * most, most)
        box = box._replace(value=np.full(most.shape, np.nan))
        return _with(box, box.varies, BASE=self.facts.fresh(most.shape), FACTOR=1.0)

    def following(self, record: InstructionRecord, core: int, engine: Engine) -> Step:
        return super().following(record, core, engine) if self.first is None else nothing

    def moving(self, resolved: Resolved, engine: Engine) -> Step:
        operands = [resolved.record.operands[n] for n in (DST, SRC)]
        types = {p.dtype for p in operands if type(p) is PatternRecord}
        if len(types) > 1:
            self._fail(resolved.record, "converts to another type at a run-time address")
        if any(
            type(p) is PatternRecord and self.store.window(p.standing) is None for p in operands
        ):
            self._fail(resolved.record, "takes bits as another type")
        return super().moving(resolved, engine) if self.first is None else nothing

    def _fail(self, record: InstructionRecord, why: str) -> None:
        if self.first is None:
            self.first = record.place, why

    def _finish(
        self,
        record: InstructionRecord,
        results: Results | None,
        written: Mapping[str, PatternRecord],
        are_constant: bool,
    ) -> None:
        super()._finish(record, results, written, are_constant)
        is_packed = any(pattern.dtype.kind == "packed" for pattern in written.values())
        reason = self._reasons.get(record.place, "packed numbers" if is_packed else None)
        if reason is not None and not are_constant:
            self._fail(record, reason)

    def _kept(
        self, record: InstructionRecord, result: Elements, values: Doubles, pattern: PatternRecord
    ) -> Elements:
        """Return a result as its type keeps it, unless it may be infinity or NaN."""
        varies, dtype, rows = result.varies, pattern.dtype, result.residues
        low, high = rows[LOW], rows[HIGH]
        exact = dtype is FLOAT32 or _selects(record, pattern)
        unit, tiny = 2.0**-dtype.mantissa_bits, dtype.smallest * 2.0**dtype.mantissa_bits
        if not dtype.is_float:
            low, high = (end.clip(dtype.lowest, dtype.highest) for end in (low, high))
            low, high = np.floor(low), np.ceil(high)
            low = np.minimum(low, low.astype(np.float32))  # as which it is read
            high = np.maximum(high, high.astype(np.float32))
        elif not exact:
            low, high = _outward(low, high, unit, tiny)
        # infinities that the program has, and what a mask of them leaves of inputs
        certain = np.where(
            varies, np.isneginf(rows[HIGH]), np.abs(rows[LOW] + rows[HIGH]) == np.inf
        )
        share = np.maximum(high, -low) / dtype.highest
        wrong = np.where(varies, share > 1, ~np.isfinite(values)) & ~certain | np.isnan(values)
        if dtype.is_float:
            self.peak = max(self.peak, float(share.max(where=varies & ~certain, initial=0.0)))
            if wrong.any():
                self._fail(record, named(record))
        low, high = (np.where(varies, end, values) for end in (low, high))
        kept, is_column = rows.copy(), varies.shape[-1] == 1
        kept[LOW], kept[HIGH] = low, high
        # an element of many that is not exactly its base becomes one of its own
        scaled = (rows[ERROR] > 0) | (rows[FACTOR] != 1)
        own = varies & ((rows[BASE] == 0) | scaled & (not is_column) | (not exact))
        if own.any():
            fresh = self.facts.fresh(varies.shape)
            if dtype.is_float and not exact:
                places = fresh.astype(np.int64)
                self.facts.source[places] = np.where(scaled | ~own, 0.0, rows[BASE])
                self.facts.spread[places] = _magnitude(result) * unit + tiny
            np.copyto(kept[BASE], fresh, where=own)
            kept[FACTOR][own], kept[ERROR][own] = 1.0, 0.0
        if not exact:
            kept[SLACK] = kept[SLACK] * (1 + unit) + 2 * unit
            lost = np.exp(-kept[SLACK]) < (tiny if dtype.is_float else np.inf)  # may become 0
            kept[KIND][lost & (kept[KIND] == FLOOR)] = 0.0
        return result._replace(residues=kept, value=np.where(varies, np.nan, values))


def _selects(record: InstructionRecord, dst: PatternRecord) -> bool:
    """Return whether results are among the operands, all of the same type."""
    if record.row is None:
        return False
    attributes = dict(zip(record.row.attribute_index, record.attributes, strict=True))
    chooses = attributes.get("op") in ("maximum", "minimum")  # an instruction's only operator
    patterns = [p for p in record.operands if type(p) is PatternRecord]
    return (record.row.moves or chooses) and all(p.dtype is dst.dtype for p in patterns)


# --------------------------------------------------------------------------------------------------

_NEAR = 2.0**-5  # a size is found within a factor of 2 ** _NEAR


class Proof(NamedTuple):
    """Up to which size of inputs no instruction makes infinity or NaN; 0 if nothing is proven.

    `low` is the least input relative to the size: -1, or 0 if none is negative. `name` and `place`
    are of the first instruction that could not be excluded beyond; empty if there is none.
    """

    size: float
    low: float
    name: str
    place: str

    def text(self, side: str) -> str:
        inputs = "inputs" if self.low else "inputs of at least 0,"
        if not self.name:
            return f"proven: {side} stays finite for all finite {inputs}".rstrip(",")
        beyond = f"{self.name} at {self.place}"
        if not self.size:
            return f"not proven: {beyond} of {side}, for inputs within 2^{_LEAST_SIZE:.0f}"
        return (
            f"proven: {side} stays finite for {inputs} up to {self.size:.4g}; "
            f"beyond, {beyond} is not excluded"
        )

    def as_json(self) -> dict[str, Any]:
        return self._asdict()


def proven(program: Executable, arrays: Arrays) -> Proof:
    """Return up to which size of inputs all results are proven finite.

    `arrays` are inputs within 1, for the run that tells what is constant.
    """
    found = _searched(program, arrays, -1.0)
    if found.size:
        return found
    return max((found, _searched(program, arrays, 0.0)), key=lambda proof: proof.size)


def _searched(program: Executable, arrays: Arrays, low: float) -> Proof:
    options = RunOptions()
    fields: list[Excluding] = []

    def at(exponent: float) -> Excluding:
        def follow(memory: Memory) -> Excluding:
            target = options.target_of(program)
            fields.append(Excluding(program, memory, target, 2.0**exponent, low))
            return fields[-1]

        simulate_ranks(program, [arrays], options, follow=follow)
        return fields.pop()

    def proof(size: float, first: tuple[int, str]) -> Proof:
        return Proof(size, low, first[1], line_of(program, first[0]))

    holds, fails = _LEAST_SIZE, 128.0
    first = at(_MOST).first
    if first is None:
        return Proof(2.0**_MOST, low, "", "")
    least = at(holds)
    if least.first is not None:
        return proof(0.0, least.first)
    peaks, is_slow = [(holds, least.peak)], False
    while fails - holds > _NEAR:
        width, middle = fails - holds, (holds + fails) / 2
        # what grows like a power of the inputs is met by the line through two sizes that hold
        guess = max(_crossing(peaks) - _NEAR / 2, holds + _NEAR)
        tried = middle if is_slow or guess >= fails else guess
        found = at(tried)
        if found.first is None:
            holds, peaks = tried, [*peaks, (tried, found.peak)]
        else:
            fails, first = tried, found.first
        is_slow = fails - holds > width / 2
    return proof(2.0**holds, first)


def _crossing(peaks: Sequence[tuple[float, float]]) -> float:
    """Return the exponent at which the line through the last two peaks reaches what a type holds.

    It is infinity if there is none.
    """
    if len(peaks) < 2 or not 0 < peaks[-2][1] < peaks[-1][1]:
        return np.inf
    (x0, y0), (x1, y1) = ((x, np.log2(peak)) for x, peak in peaks[-2:])
    return float(x1 - y1 * (x1 - x0) / (y1 - y0))
