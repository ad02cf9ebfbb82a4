"""Test the allocator on random live ranges and programs, against brute force and a lower bound."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nkic.base.diagnostics import Reporter
from nkic.base.source import NOWHERE, CallChain
from nkic.compiler.allocate import Addresses, DoesNotFit, Lifetime, place, space_of
from nkic.compiler.depend import depend
from nkic.compiler.lower import lower
from nkic.compiler.tight import pack, sink
from nkic.machine.dtypes import DTYPES
from nkic.machine.targets import TARGETS, Address, Buffer
from nkic.program.program import Program, Tensor, instructions
from tests.property.test_random_programs import Action, programs
from tests.unit.compiler.test_allocate import most

TRN2 = TARGETS["trn2"]
SBUF = space_of(Buffer.SBUF, TRN2)
AT = CallChain(NOWHERE)


def life(number: int, rows: int, bytes_: int, first: int, length: int) -> Lifetime:
    tensor = Tensor(number, f"t{number}", DTYPES["uint8"], (rows, bytes_), Buffer.SBUF, AT)
    return Lifetime(tensor, first, first + length)


@st.composite
def lives(draw: st.DrawFn) -> list[Lifetime]:
    rows = st.sampled_from([1, 32, 33, 64, 65, 128])
    found = [
        life(
            number,
            draw(rows),
            draw(st.integers(1, 100_000)),
            draw(st.integers(0, 30)),
            draw(st.integers(0, 15)),
        )
        for number in range(draw(st.integers(1, 25)))
    ]
    return sorted(found, key=lambda one: (one.first, one.tensor.number))


def share(one: Lifetime, other: Lifetime, at: Addresses) -> bool:
    """Return whether both have a byte at the same time."""
    a, b = at[one.tensor.number], at[other.tensor.number]
    bytes_ = a.byte < b.byte + other.tensor.bytes and b.byte < a.byte + one.tensor.bytes
    rows = (
        a.partition < b.partition + other.tensor.partitions
        and b.partition < a.partition + one.tensor.partitions
    )
    return one.first <= other.last and other.first <= one.last and bytes_ and rows


def check(found: Sequence[Lifetime], at: Addresses) -> None:
    for index, one in enumerate(found):
        partition, byte = at[one.tensor.number]
        assert 0 <= byte <= SBUF.capacity - one.tensor.bytes
        assert partition in {128: (0,), 65: (0,), 64: (0, 64), 33: (0, 64)}.get(
            one.tensor.partitions, (0, 32, 64, 96)
        )
        assert not [o for o in found[:index] if share(one, o, at)]


@given(lives())
@settings(max_examples=150)
def test_no_two_in_use_share_a_byte(found: list[Lifetime]) -> None:
    every = {one.tensor.number for one in found}
    for strategy in (place, pack, lambda f, s: pack(f, s, every)):
        try:
            check(found, strategy(found, SBUF))
        except DoesNotFit:
            assert most(found) > SBUF.capacity // 4


@given(lives(), st.integers(0, 100_000))
@settings(max_examples=50)
def test_fixed_addresses_are_avoided(found: list[Lifetime], byte: int) -> None:
    tensor = Tensor(99, "f", DTYPES["uint8"], (64, 500), Buffer.SBUF, AT, Address(64, byte))
    every = {one.tensor.number for one in found}
    all_ = sorted([*found, Lifetime(tensor, 0, 99)], key=lambda one: one.first)
    try:
        check(all_, pack(all_, SBUF, every))
    except DoesNotFit:
        assert most(found) > SBUF.capacity // 4


def random_lives(seed: int) -> list[Lifetime]:
    random = np.random.default_rng(seed)
    found = [
        life(
            number,
            128,
            64 * int(random.integers(1, 60)),
            int(random.integers(0, 200)),
            int(random.integers(0, 40)),
        )
        for number in range(150)
    ]
    return sorted(found, key=lambda one: (one.first, one.tensor.number))


def test_packing_is_near_the_lower_bound() -> None:
    """Most of these fit into 5 % more memory than the most bytes in use at one time, and all of
    them into 10 % more.
    """
    close = 0
    for seed in range(12):
        found = random_lives(seed)
        check(found, pack(found, replace(SBUF, capacity=most(found) * 110 // 100)))
        with suppress(DoesNotFit):
            pack(found, replace(SBUF, capacity=most(found) * 105 // 100))
            close += 1
    assert close >= 10


def test_thousands_of_tensors_are_packed_as_well() -> None:
    random = np.random.default_rng(0)
    sizes, lengths = random.choice([64, 2048, 4096, 8192], 8000), random.choice([1, 2, 5, 20], 8000)
    found = [life(n, 128, int(sizes[n]), n, int(lengths[n])) for n in range(8000)]
    beside = [[one for one in found[max(0, n - 20) : n] if one.last >= n] for n in range(8000)]
    fullest = max(
        int(sizes[n]) + sum(SBUF.size(one.tensor) for one in beside[n]) for n in range(8000)
    )
    tight = replace(SBUF, capacity=fullest * 101 // 100)
    with pytest.raises(DoesNotFit):
        place(found, tight)
    at = pack(found, tight)
    for n, others in enumerate(beside):
        assert not [one for one in others if share(one, found[n], at)]
        assert at[n].byte + sizes[n] <= tight.capacity


@given(programs(), st.sampled_from([{Buffer.SBUF}, {Buffer.PSUM, Buffer.SBUF}]))
@settings(max_examples=60)
def test_another_order_keeps_every_dependence(
    case: tuple[Program, list[Action]], tight: set[Buffer]
) -> None:
    """The graph that is returned with the order is the graph of the new order itself."""
    lowered = lower(case[0], Reporter())
    (body,), (graph,) = lowered.cores, depend(lowered)
    moved, renumbered = sink(body, graph, tight, TRN2)
    (again,) = depend(replace(lowered, cores=(moved,)))
    assert {n: set(e) for n, e in renumbered.edges.items()} == {
        n: set(e) for n, e in again.edges.items()
    }
    assert renumbered.first_touches == again.first_touches
    assert renumbered.last_touches == again.last_touches
    numbers = [one.number for one in instructions(moved)]
    assert numbers == sorted(numbers)


def test_too_many_tensors_are_refused_in_time() -> None:
    found = [life(number, 1, 1, 0, 0) for number in range(6_400)]
    with pytest.raises(DoesNotFit):
        pack(found, SBUF)
