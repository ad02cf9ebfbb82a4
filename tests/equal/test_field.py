"""The field's own laws, and that every instruction and function has a meaning or says why not."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from nkic.machine.instructions import ROWS
from nkic.machine.operators import ACTIVATIONS, ALU
from nkic.simulate.field import elements, functions
from nkic.simulate.field.elements import (
    PRIMES,
    TOP,
    Elements,
    Size,
    add,
    constant,
    invert,
    multiply,
    negative,
    variables,
)
from nkic.simulate.field.functions import (
    FUNCTIONS,
    OPERATORS,
    Order,
    exp,
    keys,
    log,
    ordered,
    root,
)
from nkic.simulate.field.rules import RULES, UNDECIDED, why_undecided

STATE = np.random.default_rng(0)
A, B = variables(STATE, (5, 70)), variables(STATE, (5, 70))


@pytest.fixture(autouse=True)
def in_an_order() -> Iterator[None]:
    with ordered(Order()):
        yield


def number(value: float) -> Elements:
    return constant(np.full((1, 1), float(np.float32(value))))


def same(one: Elements, other: Elements, levels: Any = slice(None)) -> bool:
    shape = np.broadcast_shapes(one.value.shape, other.value.shape)
    rows = [x.spread(shape).residues[levels] for x in (one, other)]
    return bool(np.array_equal(*rows))


def test_the_primes_are_a_chain_in_which_small_primes_are_squares() -> None:
    for prime in PRIMES:
        assert all(prime % d for d in range(2, 40_000))
        assert pow(-1, (prime - 1) // 2, prime) == prime - 1
        assert {pow(p, (prime - 1) // 2, prime) for p in (2, 3, 5, 7, 11, 13, 17)} == {1}
    assert all(after == 2 * before + 1 for before, after in pairwise(PRIMES))
    assert np.log2(PRIMES[TOP]) == pytest.approx(elements.BITS, abs=0.1)


def test_arithmetic_is_exact() -> None:
    product, inverse = elements.product(A.residues, B.residues), elements.inverse(A.residues)
    for level, prime in enumerate(PRIMES):
        a, b = (x.residues[level].astype(object) for x in (A, B))
        assert (product[level] == a.T @ b % prime).all()
        assert (inverse[level] * a % prime == 1).all()


def test_degrees_are_those_of_fractions_of_polynomials() -> None:
    for a, b, c, d in itertools.product(range(3), repeat=4):
        one, two = Size(a, b, 1), Size(c, d, 2)
        assert one.sum(two) == (max(a + d, c + b), b + d, 2)
        assert one.product(two) == (a + c, b + d, 2)
        assert one.joined(two) == (max(a, c), max(b, d), 2)
        same = [one] * (c + 1)
        assert one.sums(c + 1) == functools.reduce(Size.sum, same)


def test_a_logarithm_is_0_of_1_alone() -> None:
    one = multiply(B, invert(B))
    assert not log(one, 0).residues.any()
    assert all(log(x, 0).residues.any() for x in (A, add(one, negative(one))))
    assert same(log(multiply(A, one), 0), log(A, 0)) and not same(log(A, 0), log(B, 0))


def test_exponentials_turn_sums_into_products() -> None:
    one, two = exp(add(A, B), 0), multiply(exp(A, 0), exp(B, 0))
    assert same(one, two, slice(1, None)) and not same(one, two)
    assert same(exp(number(0), 0), number(1))
    assert same(root(exp(A, 0), 0), exp(multiply(A, number(0.5)), 0), slice(1, None))
    assert (keys(exp(A, 0)) > 0).all()
    inner, other = exp(exp(add(A, B), 0), 0), exp(multiply(exp(A, 0), exp(B, 0)), 0)
    assert same(inner, other, slice(TOP, None))


def test_the_order_is_one_of_numbers() -> None:
    assert (keys(negative(A)) == -keys(A)).all()
    assert (np.sign(keys(multiply(A, B))) == np.sign(keys(A)) * np.sign(keys(B))).all()
    assert 0.2 < (keys(A) > keys(B)).mean() < 0.8
    assert keys(number(-3.5)).tolist() == [[-3.5]]


def test_constants_count_as_the_fractions_and_roots_that_they_round() -> None:
    assert same(multiply(number(1 / 3), number(3)), number(1))
    assert same(multiply(number(1 / 768), number(768)), number(1))
    assert same(multiply(number(128**-0.5), number(128**-0.5)), number(1 / 128))
    assert same(multiply(number(1e-6), number(1000)), multiply(number(0.001), number(1)))
    assert same(number(0.1), multiply(number(1), number(0.1)))
    assert not same(number(0.1), number(0.1001)) and not same(number(2**-0.5), number(-(2**-0.5)))
    assert np.isneginf(number(-3e38).value).all()


def test_infinities_stay_and_vanish_in_exponentials() -> None:
    masked = add(A, number(-1e30))
    assert np.isneginf(masked.value).all() and not masked.origin.any()
    assert same(exp(masked, 3), number(0))
    assert multiply(masked, A, 3).origin.all()


def test_every_function_and_operator_has_a_meaning() -> None:
    assert ACTIVATIONS.keys() - FUNCTIONS.keys() == {"prelu"}
    bitvec = {name for name, row in ALU.items() if row.group == "bitvec"}
    assert ALU.keys() - OPERATORS.keys() == {*bitvec, "average"}
    assert not FUNCTIONS.keys() - ACTIVATIONS.keys() and not OPERATORS.keys() - ALU.keys()


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def probability(x: float) -> float:
    return (1 + math.erf(x / math.sqrt(2))) / 2


DEFINITIONS: dict[str, Callable[[float], float]] = {
    "tanh": math.tanh,
    "sigmoid": sigmoid,
    "softplus": lambda x: math.log1p(math.exp(x)),
    "mish": lambda x: x * math.tanh(math.log1p(math.exp(x))),
    "silu": lambda x: x * sigmoid(x),
    "silu_dx": lambda x: sigmoid(x) * (1 + x * (1 - sigmoid(x))),
    "erf_dx": lambda x: 2 / math.sqrt(math.pi) * math.exp(-x * x),
    "gelu": lambda x: x * probability(x),
    "gelu_dx": lambda x: probability(x) + x * math.exp(-x * x / 2) / math.sqrt(2 * math.pi),
    "gelu_apprx_tanh": lambda x: (
        x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    ),
    "gelu_apprx_sigmoid": lambda x: x * sigmoid(1.702 * x),
    "gelu_apprx_sigmoid_dx": lambda x: (
        sigmoid(1.702 * x) * (1 + 1.702 * x * (1 - sigmoid(1.702 * x)))
    ),
    "sign": lambda x: float(np.sign(x)),
    "relu": lambda x: max(x, 0.0),
    "abs": abs,
    "square": lambda x: x * x,
    "sin": math.sin,
    "arctan": math.atan,
    "erf": math.erf,
}


@pytest.mark.parametrize("name", DEFINITIONS)
def test_of_a_constant_a_function_is_the_number(name: str) -> None:
    for x in (-2.5, -0.25, 0.0, 0.5, 3.0):
        found = FUNCTIONS[name](number(x), 0).value.item()
        assert found == pytest.approx(DEFINITIONS[name](x), rel=1e-5, abs=1e-6)


def test_every_instruction_has_a_meaning_or_says_why_not() -> None:
    assert not {*RULES, *UNDECIDED} - ROWS.keys() and not RULES.keys() & UNDECIDED.keys()
    reasons = {name: why_undecided(row) for name, row in ROWS.items()}
    without = {name for name, row in ROWS.items() if not reasons[name]}
    shaped = {name for name, row in ROWS.items() if row.stages or row.copies}
    assert without == {*RULES, *shaped}
    assert not shaped & RULES.keys()
    assert reasons["topk"] == "selects by value" and reasons["all_reduce"] == "exchanges data"


MAXIMUM, MINIMUM = OPERATORS["maximum"], OPERATORS["minimum"]


@pytest.fixture
def without_an_order() -> Iterator[None]:
    order = Order()
    order.begin(is_free=True)
    with ordered(order):
        yield


@pytest.mark.usefixtures("without_an_order")
def test_without_an_order_maximum_has_the_laws_of_a_group_alone() -> None:
    c, zero = multiply(A, B), number(0)
    assert same(MAXIMUM(A, B, 0), MAXIMUM(B, A, 0))
    assert same(MAXIMUM(MAXIMUM(A, B, 0), c, 0), MAXIMUM(A, MAXIMUM(c, B, 0), 0))
    assert same(MINIMUM(A, B, 0), negative(MAXIMUM(negative(A), negative(B), 0)))
    assert same(FUNCTIONS["relu"](A, 0), MAXIMUM(zero, A, 0))
    assert same(FUNCTIONS["abs"](A, 0), MAXIMUM(negative(A), A, 0))
    row = functions.greatest(A, 0).at(np.s_[:, None])
    halves = [functions.greatest(A.at(np.s_[:, part]), 0) for part in (slice(30), slice(30, 70))]
    assert same(row, MAXIMUM(halves[0], halves[1], 0).at(np.s_[:, None]))
    for other in (A, B, MINIMUM(A, B, 0), add(A, B), OPERATORS["abs_max"](A, B, 0)):
        assert not (MAXIMUM(A, B, 0).residues == other.residues).all(axis=0).any()
    assert not (FUNCTIONS["relu"](A, 0).residues == A.residues).all(axis=0).any()


@pytest.mark.usefixtures("without_an_order")
def test_without_an_order_infinities_are_no_operands() -> None:
    least = number(-3e38)
    assert same(MAXIMUM(A, least, 0), A)
    padded = elements.join([least.spread((5, 1)), A], 1)
    assert same(functions.greatest(padded, 0), functions.greatest(A, 0))
    assert np.isneginf(MINIMUM(A, least, 0).value).all()


@pytest.mark.usefixtures("without_an_order")
def test_without_an_order_truth_is_a_function_of_what_is_compared() -> None:
    greater, less = OPERATORS["greater"], OPERATORS["less"]
    assert same(greater(A, B, 0), less(B, A, 0))
    assert same(add(greater(A, B, 0), greater(B, A, 0)), number(1))
    assert same(add(OPERATORS["less_equal"](A, B, 0), greater(A, B, 0)), number(1))
    assert not same(greater(A, B, 0), greater(A, add(B, number(1)), 0))
    assert same(greater(A, A, 0), number(0)) and same(OPERATORS["less_equal"](A, A, 0), number(1))
    mask, other = greater(A, B, 0), less(A, B, 0)
    chosen = functions.selected(mask, A, B, 0)
    assert same(functions.selected(mask, A, A, 0), A)
    for one in (functions.selected(other, A, B, 0), functions.selected(mask, B, A, 0), A, B):
        assert not (chosen.residues == one.residues).all(axis=0).any()
    both, either = OPERATORS["logical_and"], OPERATORS["logical_or"]
    assert same(both(mask, other, 0), both(other, mask, 0))
    assert not same(both(mask, other, 0), either(mask, other, 0))
    assert not same(both(mask, other, 0), both(mask, chosen, 0))
    assert same(both(number(1), number(2), 0), number(1))


def test_magnitudes_lie_evenly_between_the_constants_that_were_met() -> None:
    order = Order()
    with ordered(order):
        order.begin(is_free=False)
        MAXIMUM(A, number(-0.125), 7)
        MAXIMUM(MAXIMUM(A, number(1e6), 8), number(0), 8)
        order.begin(is_free=False)
        sizes = np.abs(keys(variables(STATE, (1, 3000))))
    edges = [2.0**-126, 0.125, 1e6, 2.0**127]
    for low, high in pairwise(edges):
        assert 0.3 < ((low <= sizes) & (sizes < high)).mean() < 0.37


def test_an_order_knows_what_it_has_seen_of_each_comparison() -> None:
    order, one = Order(), A.at(np.s_[:1, :1])
    high, low = number(1e28), number(-1e28)
    with ordered(order):
        order.begin(is_free=False)
        for turn in (one, negative(one)):
            order.follow(1)
            MAXIMUM(turn, number(0), 3)
            MAXIMUM(turn, high, 4)
            MINIMUM(turn, low, 4)
            MAXIMUM(turn, number(3e38), 5)
            MAXIMUM(high, low, 5)
    assert order.one_way() == {(1, 4): (2, 2)}
