"""The field's own laws, and that every instruction and function has a meaning or says why not."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from nkic.machine.instructions import ROWS
from nkic.machine.operators import ACTIVATIONS, ALU
from nkic.simulate.field import elements
from nkic.simulate.field.elements import (
    FUNCTIONS,
    OPERATORS,
    PRIMES,
    TOP,
    Elements,
    add,
    constant,
    exp,
    keys,
    multiply,
    negative,
    root,
    variables,
)
from nkic.simulate.field.rules import RULES, UNDECIDED, why_undecided

STATE = np.random.default_rng(0)
A, B = variables(STATE, (5, 70)), variables(STATE, (5, 70))


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


def test_every_instruction_has_a_meaning_or_says_why_not() -> None:
    assert not {*RULES, *UNDECIDED} - ROWS.keys() and not RULES.keys() & UNDECIDED.keys()
    reasons = {name: why_undecided(row) for name, row in ROWS.items()}
    without = {name for name, row in ROWS.items() if not reasons[name]}
    shaped = {name for name, row in ROWS.items() if row.stages or row.copies}
    assert without == {*RULES, *shaped}
    assert not shaped & RULES.keys()
    assert reasons["topk"] == "selects by value" and reasons["all_reduce"] == "exchanges data"
