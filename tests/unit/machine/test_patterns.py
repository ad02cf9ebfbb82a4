"""Test functions over (step, num) pairs."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nkic.machine.patterns import cuts, encodable, merged, reach, repeats, run


@pytest.mark.parametrize(
    ("dims", "wanted"),
    [
        ((), ()),
        (((5, 1), (1, 1)), ()),
        (((64, 4), (8, 8), (1, 8)), ((1, 256),)),
        (((64, 4), (8, 4), (1, 8)), ((64, 4), (1, 32))),
        (((0, 4), (0, 8)), ((0, 32),)),
        (((-8, 4), (-1, 8)), ((-1, 32),)),
        (((8, 4), (0, 8)), ((8, 4), (0, 8))),
    ],
)
def test_merged(dims: Any, wanted: Any) -> None:
    assert merged(dims) == wanted


def test_merged_pairs_have_at_most_as_many_elements_as_the_limit() -> None:
    assert merged(((4, 2), (1, 4)), 8) == ((1, 8),)
    assert merged(((4, 2), (1, 4)), 7) == ((4, 2), (1, 4))


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(1, 4)), max_size=4).map(tuple))
def test_merged_visits_the_same_elements_in_the_same_order(dims: Any) -> None:
    def visit(pairs: Any) -> list[int]:
        places = [0]
        for step, num in pairs:
            places = [place + step * i for place in places for i in range(num)]
        return places

    places = visit(dims)
    assert visit(merged(dims)) == places
    assert visit(merged(dims, 4)) == places
    assert all(num <= 4 for _, num in merged(dims, 4))
    assert run(dims) <= len(places)
    assert reach(dims) == max(places) - min(places) + 1 or any(step < 0 for step, _ in dims)


def test_encodable_ignores_the_step_of_a_single_element() -> None:
    assert encodable(((99_999, 1), (1, 65_535)), 2)
    assert not encodable(((1, 65_536),), 4)
    assert not encodable(((-32_768, 2),), 4)
    assert not encodable(((4, 2), (1, 2)), 1)


def places(dims: Any, offset: int = 0) -> list[int]:
    """Return every element of a pattern, in order."""
    found = [offset]
    for step, num in dims:
        found = [place + i * step for place in found for i in range(num)]
    return found


@pytest.mark.parametrize(
    ("nums", "count", "wanted"),
    [
        ((6, 4), 6, (6, 1)),
        ((6, 4), 3, (3, 1)),
        ((6, 4), 12, (6, 2)),
        ((6, 4), 24, (6, 4)),
        ((6, 4), 1, (1, 1)),
        ((6, 4), 4, None),
        ((6, 4), 48, None),
        ((1, 6), 2, (1, 2)),
        ((), 1, ()),
    ],
)
def test_cuts(nums: tuple[int, ...], count: int, wanted: tuple[int, ...] | None) -> None:
    """Pieces have the same total length, follow each other, and are patterns: all sizes but one are
    whole or 1.
    """
    dims = tuple((7 - i, num) for i, num in enumerate(nums))
    found = cuts(dims, count)
    assert found == wanted
    if found is not None:
        stream = places(dims)
        size = len(stream) // count
        inside = tuple((s, n // part) for (s, n), part in zip(dims, found, strict=True))
        starts = places(tuple((s * (n // p), p) for (s, n), p in zip(dims, found, strict=True)))
        pieces = [places(inside, start) for start in starts]
        assert pieces == [stream[i : i + size] for i in range(0, len(stream), size)]


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(1, 4)), max_size=4).map(tuple))
def test_repeats(dims: Any) -> None:
    """Elements that are visited twice are never missed."""
    found = places(dims)
    if len(set(found)) < len(found):
        assert repeats(dims)


@pytest.mark.parametrize(
    ("dims", "wanted"),
    [
        (((8, 4), (1, 8)), False),
        (((1, 8), (-8, 4)), False),
        (((8, 4), (2, 4)), False),
        (((7, 4), (1, 8)), True),
        (((0, 2),), True),
        (((0, 1), (1, 5)), False),
    ],
)
def test_patterns_that_repeat(dims: Any, wanted: bool) -> None:
    assert repeats(dims) is wanted
