"""Test the pieces of a stream of elements by brute force, on all ranges of small patterns."""

from itertools import pairwise
from math import prod

import pytest

from nkic.compiler.lower import _common, _cut
from nkic.machine.patterns import Dims

STREAMS: list[Dims] = [
    ((1, 6),),
    ((4, 3), (1, 4)),
    ((1, 2), (-3, 5)),
    ((20, 2), (7, 3), (2, 3)),
    ((0, 2), (6, 2), (1, 1), (2, 3)),
    ((30, 1), (5, 3), (1, 4)),
]


def places(dims: Dims) -> list[int]:
    """Return the positions of the elements of a stream, in order."""
    found = [0]
    for step, num in dims:
        found = [place + step * index for place in found for index in range(num)]
    return found


def is_one(dims: Dims, low: int, high: int) -> bool:
    """Return whether elements are some indices of one dimension, and all indices of the inner
    dimensions.
    """
    sizes = [prod(num for _, num in dims[at:]) for at in range(len(dims) + 1)]
    return any(
        low % inner == 0 and high % inner == 0 and low // outer == (high - 1) // outer
        for outer, inner in pairwise(sizes)
    )


def fewest(dims: Dims, low: int, high: int) -> int:
    """Return the least number of pieces of a range, by trying all cuts."""
    least = {low: 0}
    for end in range(low + 1, high + 1):
        least[end] = 1 + min(least[at] for at in range(low, end) if is_one(dims, at, end))
    return least[high]


def ranges(dims: Dims) -> list[tuple[int, int]]:
    count = prod(num for _, num in dims)
    return [(low, high) for low in range(count) for high in range(low + 1, count + 1)]


@pytest.mark.parametrize("dims", STREAMS)
def test_a_range_is_cut_into_the_fewest_patterns(dims: Dims) -> None:
    for low, high in ranges(dims):
        found = list(_common([dims], (low, high)))
        ends = [low, *(end for _, end in found)]
        assert found == [*pairwise(ends)] and ends[-1] == high
        assert all(is_one(dims, *piece) for piece in found)
        assert len(found) == fewest(dims, low, high), (low, high)


@pytest.mark.parametrize("dims", STREAMS)
def test_a_piece_has_the_elements_of_its_range(dims: Dims) -> None:
    everything = places(dims)
    for low, high in ranges(dims):
        if is_one(dims, low, high):
            offset, rest = _cut(dims, low, high)
            assert [offset + place for place in places(rest)] == everything[low:high]


@pytest.mark.parametrize("other", STREAMS)
def test_what_is_cut_for_several_streams_is_a_pattern_of_each(other: Dims) -> None:
    dims = STREAMS[3]
    count = min(len(places(dims)), len(places(other)))
    for low, high in ((0, count), (1, count), (2, count - 1), (1, 5)):
        found = list(_common([dims, (), other], (low, high)))
        ends = [low, *(end for _, end in found)]
        assert found == [*pairwise(ends)] and ends[-1] == high
        assert all(is_one(one, *piece) for piece in found for one in (dims, other))
