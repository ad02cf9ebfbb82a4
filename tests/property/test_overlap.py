"""Boxes cover the bytes that a pattern accesses; patterns share cells exactly if they share
bytes.
"""

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from nkic.base.source import NOWHERE, CallChain
from nkic.machine.dtypes import DTYPES
from nkic.machine.targets import Buffer
from nkic.program.overlap import MAX_CELLS, Bands, Box, Cells, are_tiles, axes_of, box, tiling
from nkic.program.program import AccessPattern, Tensor

AT = CallChain(NOWHERE)
SIZES = st.lists(st.integers(1, 5), min_size=1, max_size=3)


def tensor(free: list[int], dtype: str = "float16", on_chip: bool = True) -> Tensor:
    shape = (8, *free) if on_chip else tuple(free)
    buffer = Buffer.SBUF if on_chip else Buffer.HBM
    return Tensor(0, "t", DTYPES[dtype], shape, buffer, AT)


def overlap(a: Box, b: Box) -> bool:
    """Return whether the boxes, of one tensor, share a byte."""
    return all(
        low < other_high and other_low < high
        for (low, high), (other_low, other_high) in zip(a, b, strict=True)
    )


def touched(pattern: AccessPattern) -> set[tuple[int, int]]:
    """Return (partition, byte) of everything that the pattern accesses, by brute force."""
    size = pattern.dtype.size
    rows = range(pattern.start, pattern.start + pattern.partitions) if pattern.partitions else [0]
    steps = [[step * i for i in range(num)] for step, num in pattern.dims]
    firsts = [(pattern.offset + sum(at)) * size for at in product(*steps)]
    return {(row, first + byte) for row in rows for first in firsts for byte in range(size)}


def inside(area: tuple[tuple[int, int], ...], owner: Tensor) -> set[tuple[int, int]]:
    """Return (partition, byte) of everything in the box."""
    axes = axes_of(owner)
    rows = range(*area[0]) if owner.on_chip else [0]
    free = area[1:] if owner.on_chip else area
    found = set()
    for row, at in product(rows, product(*(range(*r) for r in free))):
        byte = 0
        for digit, length in zip(at, axes, strict=True):
            byte = byte * length + digit
        found.add((row, byte))
    return found


@st.composite
def patterns(draw: st.DrawFn, owner: Tensor, dtype: str) -> AccessPattern:
    """Draw any pattern whose bytes lie in the tensor."""
    size = DTYPES[dtype].size
    room = owner.bytes // size
    dims = []
    offset = draw(st.integers(0, room - 1))
    low = high = offset
    for _ in range(draw(st.integers(1, 3))):
        num = draw(st.integers(1, 4))
        step = draw(st.integers(-3, 12))
        reach = step * (num - 1)
        if low + min(reach, 0) < 0 or high + max(reach, 0) >= room:
            num, reach = 1, 0
        low, high = low + min(reach, 0), high + max(reach, 0)
        dims.append((step, num))
    start = draw(st.integers(0, 7)) if owner.on_chip else 0
    count = draw(st.integers(1, 8 - start)) if owner.on_chip else 0
    return AccessPattern(owner, DTYPES[dtype], start, count, offset, tuple(dims))


@given(st.data(), SIZES, st.booleans(), st.sampled_from(["float16", "uint8"]))
@settings(max_examples=150)
def test_a_box_covers_its_pattern(
    data: st.DataObject, free: list[int], on_chip: bool, dtype: str
) -> None:
    owner = tensor(free, on_chip=on_chip)
    pattern = data.draw(patterns(owner, dtype))
    assert touched(pattern) <= inside(box(pattern), owner)


@given(st.data(), SIZES, st.sampled_from(["float16", "uint8"]))
@settings(max_examples=150)
def test_slices_are_exact(data: st.DataObject, free: list[int], dtype: str) -> None:
    """A slice without steps accesses its whole box and nothing else."""
    owner = tensor(free, dtype)
    ranges = [
        sorted(data.draw(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)))) for n in free
    ]
    strides = [1] * len(free)
    for axis in reversed(range(len(free) - 1)):
        strides[axis] = strides[axis + 1] * free[axis + 1]
    offset = sum(low * s for (low, _), s in zip(ranges, strides, strict=True))
    dims = tuple((s, high - low + 1) for (low, high), s in zip(ranges, strides, strict=True))
    pattern = AccessPattern(owner, owner.dtype, 2, 3, offset, dims)
    assert touched(pattern) == inside(box(pattern), owner)


@given(st.data(), SIZES)
@settings(max_examples=100)
def test_what_does_not_follow_the_axes_is_a_run(data: st.DataObject, free: list[int]) -> None:
    """Backwards: whole rows between the lowest and the highest byte."""
    owner = tensor(free)
    room = owner.bytes // owner.dtype.size
    num = data.draw(st.integers(2, max(2, room)))
    offset = data.draw(st.integers(0, max(0, room - num)))
    if offset + num > room:
        return
    back = AccessPattern(owner, owner.dtype, 2, 3, offset + num - 1, ((-1, num),))
    low, high = offset * owner.dtype.size, (offset + num) * owner.dtype.size - 1
    ranges, apart = [], False
    for first, last, length in zip(*(_digits(b, owner) for b in (low, high)), axes_of(owner),
                                   strict=True):  # fmt: skip
        ranges.append((0, length) if apart else (first, last + 1))
        apart = apart or first != last
    assert box(back) == ((2, 5), *ranges)


def _digits(byte: int, owner: Tensor) -> list[int]:
    digits: list[int] = []
    for length in reversed(axes_of(owner)):
        byte, digit = divmod(byte, length)
        digits.insert(0, digit)
    return digits


def test_a_repeated_element_is_touched_once() -> None:
    owner = tensor([4, 6])
    dims = ((6, 2), (1, 3))
    once = AccessPattern(owner, owner.dtype, 0, 8, 6, dims)
    often = once._replace(dims=(dims[0], (0, 5), dims[1]))
    assert box(often) == box(once) == ((0, 8), (1, 3), (0, 6))


def test_a_run_over_the_end_of_a_row_touches_both_rows() -> None:
    """5 elements from the last element of a row on: the box consists of whole rows."""
    owner = tensor([4, 6])
    over = AccessPattern(owner, owner.dtype, 0, 8, 5, ((1, 5),))
    assert box(over) == ((0, 8), (0, 2), (0, 12))
    inside_one = AccessPattern(owner, owner.dtype, 0, 8, 1, ((1, 5),))
    assert box(inside_one) == ((0, 8), (0, 1), (2, 12))


def test_a_merged_run_fills_whole_rows() -> None:
    owner = tensor([4, 6])
    whole_rows = AccessPattern(owner, owner.dtype, 0, 8, 6, ((1, 12),))
    assert box(whole_rows) == ((0, 8), (1, 3), (0, 12))


def test_a_run_over_two_rows_of_two_planes_leaves_the_other_rows_out() -> None:
    owner = tensor([4, 4, 8], "float32")
    rows = AccessPattern(owner, DTYPES["float32"], 0, 128, 0, ((64, 2), (1, 16)))
    assert box(rows) == ((0, 128), (0, 3), (0, 2), (0, 32))


@given(st.data(), SIZES)
@settings(max_examples=100)
def test_boxes_share_a_cell_exactly_when_they_share_a_byte(
    data: st.DataObject, free: list[int]
) -> None:
    owner = tensor(free)
    boxes = [box(data.draw(patterns(owner, "float16"))) for _ in range(4)]
    cells = Cells(boxes)
    for a, b in product(boxes, boxes):
        shared = bool(set(cells[a]) & set(cells[b]))
        assert shared == overlap(a, b) == bool(inside(a, owner) & inside(b, owner))
        assert all(0 <= cell < cells.count for cell in cells[a])


def test_too_many_cells_are_joined_without_losing_a_conflict() -> None:
    boxes = [((i, i + 1), (j, j + 1)) for i in range(0, 100) for j in range(0, 100, 1)]
    cells = Cells(boxes)
    assert cells.count <= 4096
    assert all(cells[b] for b in boxes)
    whole = Cells([*boxes, ((0, 100), (0, 100))])
    assert set(whole[(0, 100), (0, 100)]) == {c for b in boxes for c in whole[b]}


@given(st.data(), SIZES, st.booleans(), st.sampled_from(["float16", "uint8"]))
@settings(max_examples=150)
def test_tiles_cover_a_tensor_side_by_side(
    data: st.DataObject, free: list[int], on_chip: bool, dtype: str
) -> None:
    """Their boxes are its bytes, each in one box; no more of them than allowed."""
    owner = tensor(free, on_chip=on_chip)
    pattern = data.draw(patterns(owner, dtype))
    axes, size = axes_of(owner), pattern.dtype.size
    tiles = tiling(axes, pattern.dims, size, owner.bytes)
    if tiles is None:
        return
    boxes = [box(pattern._replace(offset=offset)) for offset in sorted(tiles)]
    bytes_of = [inside(area, owner) for area in boxes]
    rows = range(pattern.start, pattern.start + pattern.partitions) if on_chip else [0]
    assert sum(map(len, bytes_of)) == len(set().union(*bytes_of)) == len(rows) * owner.bytes
    assert tiling(axes, pattern.dims, size, len(tiles)) == tiles
    assert tiling(axes, pattern.dims, size, len(tiles) - 1) is None


@given(st.data(), SIZES, st.booleans())
@settings(max_examples=150)
def test_only_patterns_side_by_side_are_tiles(
    data: st.DataObject, free: list[int], on_chip: bool
) -> None:
    first = data.draw(patterns(tensor(free, on_chip=on_chip), "float16"))
    room = first.tensor.bytes // 2 - 1 - sum(step * (num - 1) for step, num in first.dims)
    offsets = data.draw(st.lists(st.integers(0, max(0, room)), min_size=1, max_size=4))
    several = [first._replace(offset=offset) for offset in offsets]
    if are_tiles(several):
        boxes = [box(pattern) for pattern in several]
        assert not any(overlap(a, b) for n, a in enumerate(boxes) for b in boxes[:n])


def test_tiles_have_one_form() -> None:
    owner = tensor([8])
    left = AccessPattern(owner, owner.dtype, 0, 8, 0, ((1, 4),))
    right = left._replace(offset=4)
    assert are_tiles([left, right])
    assert are_tiles([right]), "the rest need not be accessed"
    assert not are_tiles([left, left._replace(offset=2)]), "they overlap"
    assert not are_tiles([left, left]), "they are the same"
    assert not are_tiles([left, right._replace(partitions=4)])
    assert not are_tiles([left, right._replace(start=4, partitions=4)])
    assert not are_tiles([left, right._replace(dims=((1, 2),))])
    assert not are_tiles([left, right._replace(dtype=DTYPES["bfloat16"])])
    long = tensor([MAX_CELLS + 1])
    one = AccessPattern(long, long.dtype, 0, 8, 0, ((1, 1),))
    assert not are_tiles([one._replace(offset=n) for n in range(MAX_CELLS + 1)]), "too many"


def test_tiles_of_a_matrix() -> None:
    assert tiling((4, 12), ((6, 2), (1, 3)), 2, 8) == {0, 3, 12, 15}
    assert tiling((4, 12), ((6, 2), (1, 4)), 2, 8) is None, "4 columns do not divide 6"
    assert tiling((4, 12), ((6, 3), (1, 3)), 2, 8) is None, "3 rows do not divide 4"
    assert tiling((4, 12), ((6, 2), (1, 3)), 2, 3) is None, "there are 4"
    assert tiling((4, 12), ((6, 2), (-1, 3)), 2, 8) is None, "backwards"


def test_bands_follow_the_starts() -> None:
    bands = Bands([0, 64, 0])
    assert list(bands.of(0, 64)) == [0]
    assert list(bands.of(0, 65)) == [0, 1]
    assert list(bands.of(64, 64)) == [1]


def test_of_too_many_cells_two_neighbours_are_one() -> None:
    """Every other cut is left out, once: no coarser than necessary."""
    boxes: list[Box] = [((at, at + 1), (0, 8)) for at in range(MAX_CELLS + 2)]
    assert Cells(boxes[:MAX_CELLS]).count == MAX_CELLS
    assert Cells(boxes[:-1]).count == MAX_CELLS // 2 + 1
    cells = Cells(boxes)
    assert cells.count == MAX_CELLS // 2 + 1
    assert [cells[one] for one in boxes[:5]] == [(0,), (0,), (1,), (1,), (2,)]
    assert cells[boxes[-1]] == (cells.count - 1,)
