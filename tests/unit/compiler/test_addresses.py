"""Test addresses for random live ranges, in memories of several sizes.

A plain search tries every byte; packing is compared with tests/data/addresses.txt.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from nkic.base.source import NOWHERE, CallChain
from nkic.compiler.allocate import Addresses, DoesNotFit, Lifetime, Space, fit, place, space_of
from nkic.compiler.tight import _by_area, _by_length, _by_size, _Overlaps, pack
from nkic.machine.dtypes import DTYPES
from nkic.machine.targets import TRN2, Address, Buffer
from nkic.program.program import Tensor
from tests.harness.bless import compare_file

PAGE = Path(__file__).parents[2] / "data/addresses.txt"
SBUF = space_of(Buffer.SBUF, TRN2)
Range = tuple[int, int]


def lives(seed: int, fixed: bool) -> list[Lifetime]:
    """Draw tensors of few sizes and types; some of them have a fixed address."""
    rng, found = Random(seed), []
    for number in range(28):
        dtype, rows = rng.choice(["uint8", "float32"]), rng.choice([1, 32, 33, 64, 65, 128])
        columns = rng.choice([1, 15, 16, 17, 63, 64, 65, 250])
        at = Address(0, 128 * (number // 9)) if fixed and number % 9 == 0 else None
        name, shape = f"t{number}", (rows, columns)
        where = (Buffer.SBUF, CallChain(NOWHERE), at)
        tensor = Tensor(number, name, DTYPES[dtype], shape, *where)
        first = rng.randrange(30)
        found.append(Lifetime(tensor, first, first + rng.randrange(12)))
    return sorted(found, key=lambda one: (one.first, one.tensor.number))


def most(found: Sequence[Lifetime]) -> int:
    """Return the most bytes in use at one time: no placement of whole columns takes less."""
    return max(
        sum(SBUF.size(o.tensor) for o in found if o.first <= one.first <= o.last) for one in found
    )


def spaces(found: Sequence[Lifetime]) -> Iterator[Space]:
    """Return memories from one with room for all tensors to one that is too small."""
    for percent in (400, 150, 120, 105, 100, 90):
        yield replace(SBUF, capacity=most(found) * percent // 100 // 64 * 64)


# The same by plain search.


def apart(low: int, high: int, taken: Sequence[Range]) -> bool:
    return all(high <= start or end <= low for start, end in taken)


def lowest(taken: Sequence[Range], capacity: int, size: int, after: int) -> int | None:
    """Return the first byte from `after` on at which there is room."""
    starts = range(after, capacity - size + 1)
    return next((at for at in starts if apart(at, at + size, taken)), None)


@pytest.mark.parametrize("seed", range(40))
def test_room_is_found_at_the_lowest_byte(seed: int) -> None:
    rng, taken, at = Random(seed), [], 0
    for _ in range(rng.randrange(6)):
        at += rng.randrange(5)
        taken.append((at, at + rng.randrange(1, 9)))
        at = taken[-1][1]
    for size in range(1, 8):
        for after in range(at + 3):
            assert fit(taken, at + 2, size, after) == lowest(taken, at + 2, size, after)


def slots(found: Sequence[Lifetime], space: Space, rest: int) -> Addresses | None:
    """Place in slots by size and type: in the slot that has been free longest, once `rest` slots
    are free.
    """
    held: dict[int, tuple[int, object]] = {}
    free: list[tuple[int, int, int, object]] = []  # end, order, start, kind
    addresses, top = Addresses(), 0
    for order, life in enumerate(found):
        kind = (space.size(life.tensor), life.tensor.dtype.name)
        over = [(one.last, i) for i, one in enumerate(found[:order]) if one.last < life.first]
        free += [(last, i, *held.pop(i)) for last, i in sorted(over) if i in held]
        same = [one for one in free if one[3] == kind]
        if same and (len(same) >= rest or top + kind[0] > space.capacity):
            free.remove(same[0])
            start = same[0][2]
        elif top + kind[0] <= space.capacity:
            start, top = top, top + kind[0]
        else:
            return None
        held[order] = (start, kind)
        addresses[life.tensor.number] = Address(0, start)
    return addresses


def swept(found: Sequence[Lifetime], space: Space, around: bool) -> Addresses | None:
    """Place in program order at the lowest free bytes, or at those after the preceding tensor."""
    addresses = {one.tensor.number: one.tensor.fixed for one in found if one.tensor.fixed}
    own = {number: at.byte for number, at in addresses.items()}
    after = 0
    for life in found:
        if life.tensor.fixed is not None:
            continue
        taken = [_range(one, own[one.tensor.number], space) for one in found
                 if one.tensor.number in own and one.first <= life.last and life.first <= one.last
                 and (one.tensor.fixed is not None or one.last >= life.first)]  # fmt: skip
        size = space.size(life.tensor)
        starts = [lowest(taken, space.capacity, size, at) for at in (after, 0)]
        start = starts[0] if starts[0] is not None else starts[1]
        if start is None:
            return None
        own[life.tensor.number] = start
        addresses[life.tensor.number] = Address(0, start)
        after = start + size if around else 0
    return addresses


def _range(one: Lifetime, byte: int, space: Space) -> Range:
    low = byte // space.align * space.align
    high = byte + one.tensor.bytes
    return low, max(low + space.align, -(-high // space.align) * space.align)


def or_none(strategy: Callable[[], Addresses]) -> Addresses | None:
    """Return the addresses, or None if there is no room."""
    try:
        return strategy()
    except DoesNotFit:
        return None


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("fixed", [False, True])
def test_places_are_those_of_a_plain_search(seed: int, fixed: bool) -> None:
    found = lives(seed, fixed)
    for space in spaces(found):
        for rest in (0, 1, 2, 8):
            wanted = None if fixed else slots(found, space, rest)
            if wanted is None:
                wanted = swept(found, space, True) or swept(found, space, False)
            assert or_none(lambda: place(found, space, rest)) == wanted  # noqa: B023


@pytest.mark.parametrize("seed", range(4))
def test_what_is_packed_first(seed: int) -> None:
    """Orders: the largest tensor, the largest for the longest time, the longest live range
    first.
    """
    for one in lives(seed, False):
        size, time = SBUF.size(one.tensor), one.last + 1 - one.first
        assert _by_size(SBUF, one) == (-size, one.first)
        assert _by_area(SBUF, one) == (-size * time, one.first)
        assert _by_length(SBUF, one) == (1 - time, -size)


def test_packing_chooses_as_it_did() -> None:
    text = ""
    for seed in range(8):
        found = lives(seed, seed % 2 == 1)
        every = {one.tensor.number for one in found}
        for space in spaces(found):
            for movable in ((), every):
                made = or_none(lambda: pack(found, space, movable))  # noqa: B023
                text += f"{seed} in {space.capacity}, {len(movable)} move: {_listed(made)}\n"
    compare_file(PAGE, text)


def _listed(found: Addresses | None) -> str:
    if found is None:
        return "no room"
    return " ".join(f"{n}={at.partition}+{at.byte}" for n, at in sorted(found.items()))


@pytest.mark.parametrize("seed", range(6))
def test_what_is_in_use_together_is_found_as_by_asking_each(seed: int) -> None:
    """A tensor may be its own neighbour; pairs are counted in both directions."""
    found = lives(seed, False)
    together = _Overlaps(found)
    count = 0
    for i, one in enumerate(found):
        wanted = {j for j, other in enumerate(found) if one.meets(other) and i != j}
        assert set(together.beside(one.tensor.number).tolist()) - {i} == wanted
        count += len(wanted)
    assert together.pairs == len(found) + count
