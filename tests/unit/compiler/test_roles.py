"""Test banks of PSUM by role: how many each role gets, and that roles do not block each other."""

from itertools import combinations

import numpy as np
import pytest

from nkic.base.source import CallChain, Span
from nkic.compiler.allocate import DoesNotFit, Lifetime, Space, by_role
from nkic.machine.dtypes import FLOAT32
from nkic.machine.targets import PSUM_BANK_BYTES, Buffer
from nkic.program.program import Tensor

SPACE = Space(Buffer.PSUM, 8 * PSUM_BANK_BYTES, PSUM_BANK_BYTES)
Made = tuple[int, int, int, int]  # line, banks, first and last access


def lives(*made: Made) -> list[Lifetime]:
    found = []
    for number, (line, banks, first, last) in enumerate(made):
        at = CallChain(Span("k.py", line, 1, line, 9))
        shape = (128, 512 * banks)
        found.append(Lifetime(Tensor(number, "t", FLOAT32, shape, Buffer.PSUM, at), first, last))
    return found


def banks(*made: Made) -> list[int]:
    """Return the first bank of each tensor."""
    found = by_role(lives(*made), SPACE)
    return [found[number].byte // PSUM_BANK_BYTES for number in range(len(made))]


def test_each_place_has_banks_of_its_own() -> None:
    """Iterations of a loop: one tile with a long live range, and three in succession."""
    iterations = [
        one
        for iteration in range(3)
        for one in (
            (1, 1, iteration * 10, iteration * 10 + 8),
            *((2, 1, iteration * 10 + n, iteration * 10 + n) for n in (1, 2, 3)),
        )
    ]
    found = banks(*iterations)
    long, short = found[::4], [bank for n, bank in enumerate(found) if n % 4]
    assert not set(long) & set(short)
    assert len(set(long)) == 3  # a bank for each turn, before the short ones get the rest
    assert len(set(short)) == 5


def test_the_longest_get_what_is_left_over() -> None:
    """Each iteration gets two of three banks; neither of the remaining two suffices for the long
    tiles.
    """
    assert banks((1, 3, 0, 9), (2, 1, 1, 2), (1, 3, 10, 19), (2, 1, 11, 12)) == [0, 6, 3, 7]


def test_places_one_after_the_other_share_all_banks() -> None:
    found = banks(*((1, 1, n, n) for n in range(8)), *((2, 1, 10 + n, 10 + n) for n in range(8)))
    assert found == [*range(8), *range(8)]


def test_what_is_in_use_at_once_must_fit() -> None:
    with pytest.raises(DoesNotFit):
        banks((1, 5, 0, 9), (2, 4, 1, 2))


@pytest.mark.parametrize("seed", range(30))
def test_no_two_tiles_meet(seed: int) -> None:
    rng = np.random.default_rng(seed)
    made: list[Made] = []
    for first in range(40):
        line = int(rng.integers(1, 4))
        made.append((line, 1 + line // 3, first, first + int(rng.integers(0, 2))))
    found = by_role(lives(*made), SPACE)
    for one, other in combinations(lives(*made), 2):
        if one.meets(other):
            low, high = (found[life.tensor.number].byte for life in (one, other))
            assert low + one.tensor.bytes <= high or high + other.tensor.bytes <= low
