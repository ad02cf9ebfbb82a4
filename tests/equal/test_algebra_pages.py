"""Operators and functions of each algebra, over grids of elements, give what tests/data/equal says.

NKIC_BLESS=1 writes the pages again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from nkic.simulate.field import batch, elements, functions, intervals
from nkic.simulate.field.elements import PRIMES, Elements, choose, constant, join, variables
from nkic.simulate.field.functions import FIELD, Algebra, Order, ordered
from nkic.simulate.field.intervals import COUNT, GREATEST, HIGH, LOW, Facts
from tests.equal.recorded import PAGES, listed, page, sum_of, sum_of_elements
from tests.harness.bless import compare_file

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of numbers beyond all sense
PLACE = 3  # of the instruction that computes
OTHER = (-np.inf, -2.5, -1.0, -0.5, 0.0, 1.0, 3.0, np.inf)
POWERS = (*range(-17, 18), -16.25, -2.25, -0.5, -0.25, 0.25, 0.3, 0.5, 0.75, 1.5, 15.75, 16.25)


# ---- The field, and terms ----


def kinds() -> list[Elements]:
    """Return elements of all kinds, (2, 9) each: inputs, constants, infinities, noted ones."""
    state = np.random.default_rng(5)
    inputs = variables(state, (2, 9))
    numbers = constant(np.array([[-3.0, -1.0, -0.5, 0.0, 1 / 3, 0.5, 1.0, 2.0, 5.0]] * 2))
    infinite = constant(
        np.array([[-np.inf, np.inf, 0.0, 1e30, -1e30, 1.0, 9e29, -2.0, np.inf]] * 2)
    )
    where = np.arange(18).reshape(2, 9)
    mixed = choose(where % 3 == 0, numbers, inputs)
    with_zeros = choose(where % 4 == 1, inputs._replace(residues=inputs.residues * 0), inputs)
    ones = inputs._replace(residues=np.where(where % 2 == 0, 1, inputs.residues))
    size = elements.Size(3.0, 2.0, 1)
    noted = inputs.noted(7, where > 9).undecided(5, where % 5 == 2)._replace(size=size)
    opposite = elements.negative(inputs)
    return [inputs, numbers, infinite, mixed, with_zeros, ones, noted, opposite]


def of_terms(found: list[Elements]) -> list[Elements]:
    """Return the same kinds for the algebra of terms."""
    numbers = (batch.constant(np.where(np.isnan(x.value), 0.5, x.value)) for x in found)
    return [choose(x.varies, x, own) for x, own in zip(found, numbers, strict=True)]


def operators(algebra: Algebra, kinds: list[Elements]) -> Iterator[str]:
    for name, operator in sorted(algebra.operators.items()):
        pairs = product(kinds, repeat=2)
        yield f"{name}: {listed(operator(a, b, PLACE) for a, b in pairs)}"


def others(algebra: Algebra, kinds: list[Elements]) -> Iterator[str]:
    for name, function in sorted(algebra.functions.items()):
        yield f"{name}: {listed(function(x, PLACE) for x in kinds)}"
    for op in ("add", "average", "multiply", "maximum", "minimum", "logical_or", "none"):
        if algebra is FIELD or op != "none":
            yield f"rows, {op}: {listed(algebra.reduction(op, x, PLACE) for x in kinds)}"
    for one, mask in enumerate(kinds):
        rest = (algebra.selected(mask, a, b, PLACE) for a, b in product(kinds[:4], repeat=2))
        yield f"selected by {one}: {listed(rest)}"
    slope = kinds[1].at(np.s_[:, 5:6])
    yield f"prelu: {listed(algebra.prelu(x, slope, PLACE) for x in kinds)}"
    eye = algebra.constant(np.eye(2))
    for one, left in enumerate([*kinds, eye, eye.at(np.s_[:, :1])]):
        rest = (algebra.matmul(left, right, PLACE) for right in (*kinds, eye))
        yield f"matmul of {one}: {listed(rest)}"
    yield f"sums: {listed(algebra.sum_of(x, PLACE) for x in kinds)}"
    yield f"negative: {listed(algebra.negative(x) for x in kinds)}"
    yield f"inverse: {listed(algebra.invert(x, PLACE) for x in kinds)}"
    yield f"unknown: {sum_of_elements(algebra.unknown((2, 3)))}"


@pytest.mark.parametrize("part", [operators, others])
@pytest.mark.parametrize("is_free", [False, True])
def test_the_field(is_free: bool, part: Callable[..., Iterator[str]]) -> None:
    order = Order()
    with ordered(order):
        for free in (False, is_free):  # constants are met in the first
            order.begin(free)
            order.follow(int(free))
            found = [*part(FIELD, kinds())]
    found += [f"one way: {order.one_way()}", f"roots: {order.has_roots}"]
    compare_file(PAGES / f"field_{part.__name__}{'_free' * is_free}.txt", page(found))


@pytest.mark.parametrize("part", [operators, others])
def test_terms(part: Callable[..., Iterator[str]]) -> None:
    compare_file(
        PAGES / f"terms_{part.__name__}.txt", page([*part(batch.TERMS, of_terms(kinds()))])
    )


def powers() -> Iterator[str]:
    x = kinds()
    for exponent in POWERS:
        number = constant([[exponent]])
        yield f"power {exponent}: {listed(functions._power(a, number, PLACE) for a in x)}"
    several = constant([[1.0, 2.0, *[3.0] * 7]])
    yield f"several powers: {listed(functions._power(a, several, PLACE) for a in x)}"


def constants() -> Iterator[str]:
    thirds = [n / d for n in (1, 2, 5, 7, 22, 355) for d in (3, 7, 9, 113, 1000, 4097)]
    values = [*thirds, *(x**0.5 for x in thirds), 0.1001, 1e-6, 1e30, 9.9e29, 3e15 + 0.5, 1e-30]
    for bits in (4, 8, 11, 24):
        unit = 2.0 ** (bits - 1)
        for value in (*values, *(-x for x in values[:9])):
            scale = 2.0 ** np.floor(np.log2(abs(value)))
            near = np.round(value / scale * unit) / unit * scale
            for shift in (0, 1):
                yield f"{near:.9g} + {shift} of {bits} bits: " + sum_of(
                    elements.constants(np.array([near + shift * scale / unit]), bits)
                )


def numbers() -> Iterator[str]:
    """Functions of residues, at their ends and in between."""
    small = [0, 1, 2, 3, 4, 5, 2047, 2048, 2049, (1 << 22) - 1, 1 << 22, (1 << 22) + 1]
    ends = [p + n for p in PRIMES for n in (-2, -1)] + [p // 2 + n for p in PRIMES for n in (0, 1)]
    rows = elements.reduced(np.array([[*small, *ends, *range(6, 90)]] * 3, np.int64))
    yield f"roots: {sum_of(*elements.roots(rows))}"
    yield f"signs: {sum_of(elements.signs(rows))}"
    yield f"exponentials: {sum_of(elements.exponentials(rows))}"
    for count in (1, 63, 64, 65, 100):
        yield f"{count} inverses: {sum_of(elements.inverse(rows[:, :count]))}"
    yield f"hashed: {sum_of(elements.hashed('a', rows), elements.hashed('ab', rows))}"
    yield f"keyed: {sum_of(functions.keyed('a', rows, rows[:, ::-1]))}"
    parts = np.linspace(0, 1, 7)
    for met in ((), (2.0,), (0.5, 3.0), tuple(float(n) for n in range(1, 40)), (1e-300, 1e300)):
        order = Order()
        order._met.update(met)
        order.begin(False)
        yield f"magnitudes between {len(met)}: {sum_of(order.magnitudes(parts))}"


@pytest.mark.parametrize("part", [powers, constants, numbers])
def test_what_the_field_computes_with(part: Callable[[], Iterator[str]]) -> None:
    with ordered(Order()):
        compare_file(PAGES / f"{part.__name__}.txt", page([*part()]))


# ---- Intervals ----

ENDS = (
    *(-np.inf, -GREATEST, -3e38, -200.0, -3.2, -1.0, -1e-39, 0.0),
    *(1e-39, 0.5, 1.0, 3.2, 200.0, 3e38, GREATEST, np.inf),
)


def boxes() -> Elements:
    """Return all intervals between two of `ENDS`, and constants at the end."""
    low, high = np.array([*combinations_with_replacement(ENDS, 2)]).T[:, None]
    found = intervals.interval(low, high)
    numbers = intervals.constant(np.array([[*ENDS, np.nan]]))
    return join([found._replace(value=np.full(low.shape, np.nan)), numbers], 1)


def _ends(found: Elements, at: int) -> str:
    low, high = found.residues[[LOW, HIGH], 0, at]
    return f"[{low:.8g}, {high:.8g}]"


def bounds() -> Iterator[str]:
    facts, x = Facts(), boxes()
    shown = [n for n in range(x.value.size) if n % 17 == 3]
    yield f"of {' '.join(_ends(x, n) for n in shown)}"
    for name, function in sorted(facts.algebra.functions.items()):
        found = function(x, PLACE)
        yield f"{name} {sum_of_elements(found)}: {' '.join(_ends(found, n) for n in shown)}"
    few = x.at(np.s_[:, ::7])
    column = few.moved(np.transpose)
    for name, operator in sorted(facts.operators.items()):
        numbers = (*OTHER, 0.3, 2.0, -2.0)
        both = [operator(x, intervals.constant([[number]]), PLACE) for number in numbers]
        both += [operator(x, column, PLACE)] * (name != "power")
        yield f"{name}: {listed(both)}"
    yield f"inverse: {sum_of_elements(facts.algebra.invert(x, PLACE))}"
    yield f"negative: {sum_of_elements(facts.algebra.negative(x))}"
    for name in ("equal", "logical_and"):
        mask = facts.operators[name](x, column, PLACE)
        yield f"selected by {name}: {listed([facts.algebra.selected(mask, x, column, PLACE)])}"
    slopes = intervals.constant([[p] for p in OTHER])
    yield f"prelu: {sum_of_elements(facts.algebra.prelu(x, slopes, PLACE))}"
    rows = few.spread((2, few.value.size)).at(np.s_[:, :16]).moved(lambda a: a.reshape(-1, 4))
    for op in ("add", "average", "maximum", "minimum", "multiply", "logical_or", "none"):
        yield f"rows, {op}: {sum_of_elements(facts.algebra.reduction(op, rows, PLACE))}"
    for step in (1, 3, 5):
        part = x.at(np.s_[:, step::step]).at(np.s_[:, :20]).moved(lambda a: a.reshape(4, 5))
        others = part, column.at(np.s_[:4]).spread((4, 5))
        yield f"matmul: {listed(facts.matmul(part, other) for other in others)}"
    yield f"unknown: {sum_of_elements(facts.algebra.unknown((2, 3)))}"


def related(seed: int) -> tuple[Facts, list[Elements]]:
    """Return elements that are multiples, differences and floors of few bases, drawn so that they
    often have to do with each other; some bases are maxima of others.
    """
    r, facts = np.random.default_rng(seed), Facts()
    facts.fresh((9,))
    facts.above[1:8], facts.members[5:9] = [5, 5, 6, 6, 7, 7, 8], [2, 2, 2, 1]
    facts.source[3:5], facts.spread[3:5] = [1, 2], [0.125, 1e-3]

    def drawn(rows: int, columns: int) -> Elements:
        shape = (rows, columns)
        ends = r.choice([-200.0, -3.2, -1.0, 0.0, 0.0, 0.5, 1.0, 3.2, 200.0], (2, *shape))
        found = intervals.interval(ends.min(0), ends.max(0))
        levels = found.residues.copy()
        for level, choices in enumerate(_LEVELS, 2):
            levels[level] = r.choice(choices, shape)
        is_number = r.random(shape) < 0.1
        levels[2:] = np.where(is_number, 0.0, levels[2:])
        levels[HIGH] = np.where(is_number, levels[LOW], levels[HIGH])
        return found._replace(residues=levels, value=np.where(is_number, levels[LOW], np.nan))

    return facts, [drawn(20, 30) for _ in range(2)] + [drawn(60, 4), drawn(60, 2), drawn(5, 6)]


_LEVELS = (
    (0, 1, 1, 2, 3, 4, 5, 7),  # the base
    (1.0, 1.0, -1.0, -1.0, 2.0, -2.0, 0.3, -1.0000001),
    (0.0, 0.0, 0.0, 0.5, 1e-7, 1e-38),
    (0.0, 1.0, 2.0, 2.0),  # the kind
    *((1, 2, 3, 4, 5, 6), (5, 6, 7, 8, 1)),
    (0.0, 0.25, 1.0, 100.0, 1e-38),
)


def relations(seed: int) -> Iterator[str]:
    facts, (a, b, rows, pairs, square) = related(seed)
    numbers = [intervals.constant([[c]]) for c in (-2.0, -0.3, 0.0, 0.3, 1.0, 2.0, np.inf)]
    for name in ("add", "subtract", "multiply", "maximum", "minimum"):
        operator = facts.operators[name]
        both = [operator(a, b, PLACE), operator(a, a, PLACE)]
        yield f"{name}: {listed(both)} {sum_of(facts.known[:, :2000])}"
        yield f"{name} of numbers: {listed(operator(a, c, PLACE) for c in numbers)}"
    for name in ("exp", "square", "copy", "abs", "sqrt"):
        yield f"{name}: {sum_of_elements(facts.algebra.functions[name](a, PLACE))}"
    for each in (rows, pairs):
        for op in ("add", "average", "maximum", "minimum"):
            found = facts.reduction(op, each, PLACE)
            assert found is not None
            yield f"rows, {op}: {sum_of_elements(found)} {sum_of(facts.known[:, :4000])}"
    positive = rows.residues.copy()
    positive[LOW], positive[HIGH] = 0.0, np.maximum(positive[HIGH], 1.0)
    positive[5] = 2.0  # floors
    yield f"floors: {sum_of_elements(facts.sum_of(rows._replace(residues=positive)))}"
    eye = intervals.constant(np.eye(5))
    ones = intervals.constant(np.ones((5, 2)))
    for one, other in (
        (square, square),
        (square, eye),
        (eye, square),
        (square, ones),
        (ones, square),
    ):
        yield f"matmul: {sum_of_elements(facts.matmul(one, other))}"


@pytest.mark.parametrize("seed", range(4))
def test_what_is_known_of_related_intervals(seed: int) -> None:
    compare_file(PAGES / f"relations_{seed}.txt", page([*relations(seed)]))


def test_bounds_of_functions_and_operators() -> None:
    compare_file(PAGES / "bounds.txt", page([*bounds()]))
    assert boxes().residues.shape[0] == COUNT
