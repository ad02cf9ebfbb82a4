"""Test the proofs' own areas.

They cover every byte that a pattern accesses, and are never coarser than those by which depend
orders, or a valid schedule would be rejected.
"""

from itertools import combinations, product
from math import prod

from hypothesis import given, settings
from hypothesis import strategies as st

from nkic.base.source import CallChain, Span
from nkic.machine.dtypes import DTYPES
from nkic.machine.targets import Buffer
from nkic.program.overlap import Cells, box
from nkic.program.program import AccessPattern, Tensor
from nkic.prove.effects import MOST_CELLS, WHOLE, Grid, are_tiles, area, area_of, axes_of
from nkic.prove.model import Box

AT = CallChain(Span("k.py", 1, 1, 1, 1))
TYPES = [DTYPES[name] for name in ("float32", "bfloat16", "uint8")]


@st.composite
def patterns(draw: st.DrawFn) -> AccessPattern:
    """Draw an access inside a tensor of up to three small axes."""
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)))
    dtype = draw(st.sampled_from(TYPES))
    tensor = Tensor(0, "t", dtype, shape, Buffer.SHARED_HBM, AT)
    elements = prod(shape)
    dims: list[tuple[int, int]] = []
    low = high = 0
    for _ in range(draw(st.integers(1, 3))):
        step, num = draw(st.integers(-elements, elements)), draw(st.integers(1, 6))
        reach = step * (num - 1)
        if max(high, high + reach) - min(low, low + reach) < elements:
            dims.append((step, num))
            low, high = min(low, low + reach), max(high, high + reach)
    offset = draw(st.integers(-low, elements - 1 - high))
    return AccessPattern(tensor, dtype, 0, 0, offset, tuple(dims) or ((1, 1),))


def touched(pattern: AccessPattern) -> set[int]:
    size = pattern.dtype.size
    starts = {
        pattern.offset + sum(step * i for (step, _), i in zip(pattern.dims, at, strict=True))
        for at in product(*(range(num) for _, num in pattern.dims))
    }
    return {start * size + byte for start in starts for byte in range(size)}


def covered(box: Box, axes: tuple[int, ...]) -> set[int]:
    found = set()
    for index in product(*(range(low, high) for low, high in box)):
        byte = 0
        for position, length in zip(index, axes, strict=True):
            byte = byte * length + position
        found.add(byte)
    return found


@given(patterns())
@settings(max_examples=400)
def test_an_area_covers_what_is_touched_and_no_more_than_depends(pattern: AccessPattern) -> None:
    found = area_of(pattern)
    assert found != WHOLE
    mine = covered(found, axes_of(pattern.tensor))
    assert touched(pattern) <= mine <= covered(box(pattern), axes_of(pattern.tensor))


def test_a_step_inside_an_axis_and_a_run_over_several() -> None:
    axes = (4, 6, 8)
    assert area(axes, 1, 8, ((8, 2), (2, 3))) == ((0, 1), (1, 3), (0, 5))
    assert area(axes, 1, 48, ((1, 96),)) == ((1, 3), (0, 6), (0, 8))
    assert area(axes, 2, 24, ((1, 4),)) == ((1, 2), (0, 1), (0, 8))
    assert area(axes, 1, 95, ((-1, 8),)) == ((1, 2), (5, 6), (0, 8))


@given(st.lists(patterns(), min_size=2, max_size=6))
@settings(max_examples=200)
def test_cells_are_shared_just_where_boxes_overlap(found: list[AccessPattern]) -> None:
    rank = len(axes_of(found[0].tensor))
    boxes = [b for p in found if len(b := area_of(p)) == rank]
    grid, theirs = Grid(dict.fromkeys(boxes)), Cells(boxes)
    for one, other in product(boxes, boxes):
        both = all(a < d and c < b for (a, b), (c, d) in zip(one, other, strict=True))
        assert bool({*grid.cells(one)} & {*grid.cells(other)}) == both
        assert bool({*theirs[one]} & {*theirs[other]}) == both


@given(patterns(), st.sets(st.integers(0, 60), min_size=2, max_size=5))
@settings(max_examples=400)
def test_tiles_share_no_byte(pattern: AccessPattern, steps: set[int]) -> None:
    axes, size, dims = axes_of(pattern.tensor), pattern.dtype.size, pattern.dims
    offsets = {pattern.offset % 4 + step for step in steps}
    inside = {at for at in offsets if min(touched(pattern._replace(offset=at))) >= 0}
    inside = {at for at in inside if max(touched(pattern._replace(offset=at))) < prod(axes)}
    if are_tiles(axes, size, inside, dims):
        boxes = [area(axes, size, at, dims) for at in inside]
        for one, other in combinations(boxes, 2):
            assert not all(a < d and c < b for (a, b), (c, d) in zip(one, other, strict=True))


def test_tiles_start_at_multiples_of_their_size() -> None:
    axes = (4, 6, 8)
    half_rows = ((48, 1), (8, 6), (1, 4))
    assert are_tiles(axes, 1, range(0, 192, 4), ((8, 1), (1, 4)))
    assert are_tiles(axes, 1, (0, 4, 48, 52), half_rows)
    assert not are_tiles(axes, 1, (0, 2), half_rows)
    assert not are_tiles(axes, 1, (0, 8), half_rows)
    assert not are_tiles(axes, 1, (0, 5), ((1, 5),))  # leaves its axis
    assert not are_tiles(axes, 1, (7, 15), ((-1, 4),))


def test_cells_are_those_between_two_cuts() -> None:
    assert Grid([((0, 4), (0, 8))]).count == 1
    assert Grid([((0, 4), (0, 8)), ((0, 2), (0, 8))]).count == 2
    assert Grid([((0, 4), (0, 8)), ((0, 2), (3, 8))]).count == 4


def test_of_too_many_cells_two_neighbours_are_one() -> None:
    """Every other cut is left out, once: no coarser than necessary."""
    boxes: list[Box] = [((at, at + 1), (0, 8)) for at in range(MOST_CELLS + 2)]
    assert Grid(boxes[:MOST_CELLS]).count == MOST_CELLS
    assert Grid(boxes[:-1]).count == MOST_CELLS // 2 + 1
    grid = Grid(boxes)
    assert grid.count == MOST_CELLS // 2 + 1
    assert [grid.cells(one)[0] for one in boxes[:6]] == [0, 0, 1, 1, 2, 2]
    assert grid.cells(boxes[-1]) == (grid.count - 1,)


def test_too_many_cells_are_joined_and_none_is_lost() -> None:
    boxes: list[Box] = [((r, r + 1), (c, c + 1)) for r in range(600) for c in (r, r + 7)]
    grid = Grid(dict.fromkeys(boxes))
    assert grid.count <= MOST_CELLS
    assert all(grid.cells(one) and max(grid.cells(one)) < grid.count for one in boxes)
    whole = Grid(dict.fromkeys([*boxes, ((0, 600), (0, 607))]))
    assert len(whole.cells(((0, 600), (0, 607)))) == whole.count
