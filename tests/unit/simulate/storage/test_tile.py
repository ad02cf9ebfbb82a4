"""Test tiles: windows of a common shape, conversions, and delayed writes."""

from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nkic.artifact.records import PatternRecord
from nkic.simulate.memory import Memory, Scratch
from nkic.simulate.tile import Tile, refined
from tests.harness.memories import HBM, access, executable, tensor


def tiles(*patterns: PatternRecord, precise: bool = True) -> list[Tile]:
    """Return tiles of one tensor, float32 [8, 64] or of the patterns' type."""
    kind = patterns[0].dtype
    record = tensor(kind.name, (8, 64))
    memory = Memory(executable([record], patterns))
    memory.homes[0].region.array[...] = 0
    return [Tile(memory, pattern, precise).bound() for pattern in patterns]


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        ([(24,)], (24,)),
        ([(4, 6), (24,)], (4, 6)),
        ([(4, 6), (2, 12)], (2, 2, 6)),
        ([(4, 6), (3, 8)], None),
        ([(2, 3, 4), (6, 4), (2, 12)], (2, 3, 4)),
        ([(1, 24, 1), (24,)], (24,)),
        ([(1,), (1, 1)], (1,)),
    ],
)
def test_the_fewest_sizes_that_refine_all(
    shapes: list[tuple[int, ...]], expected: tuple[int, ...] | None
) -> None:
    assert refined(tuple(shapes)) == expected


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_splitting_a_window_never_copies(sizes: list[int], data: st.DataObject) -> None:
    """For all steps, including 0 and negative ones."""
    steps = data.draw(st.lists(st.integers(-2, 3), min_size=len(sizes), max_size=len(sizes)))
    low = sum(-s * (n - 1) for s, n in zip(steps, sizes, strict=True) if s < 0)
    (tile,) = tiles(access(0, list(zip(steps, sizes, strict=True)), partitions=8, offset=low))
    total = prod(sizes)
    cuts = data.draw(st.sampled_from([d for d in range(1, total + 1) if total % d == 0]))
    common = refined((tuple(sizes), (cuts, total // cuts)))
    if common is not None:
        view = tile.seen_as(common)()
        assert view.shape == (8, *common) and np.shares_memory(view, tile.window)
        assert np.array_equal(view.ravel(), tile.window.ravel())


def test_float32_is_read_and_written_in_place() -> None:
    (tile,) = tiles(access(0, ((16, 2), (1, 4)), partitions=8))
    assert tile.load((2, 4))() is tile.load((2, 4))()
    assert np.shares_memory(tile.load((2, 2, 2))(), tile.window)
    out, store, direct = tile.sink((2, 4))
    assert direct and np.shares_memory(out(), tile.window)
    store()


def test_flattening_copies_only_what_does_not_merge() -> None:
    gaps, merged = tiles(
        access(0, ((16, 2), (1, 4)), partitions=8), access(0, ((4, 2), (1, 4)), partitions=8)
    )
    assert np.shares_memory(merged.load()(), merged.window) and merged.sink().direct
    gaps.window[...] = np.arange(8).reshape(2, 4)
    flat = gaps.load()()
    assert not np.shares_memory(flat, gaps.window)
    assert flat.shape == (8, 8) and flat[3].tolist() == list(range(8))
    out, store, direct = gaps.sink()
    assert not direct
    out()[...] = 7
    assert gaps.window[0, 1, 3] == 7.0
    store()
    assert (gaps.window == 7).all()


def test_a_write_may_be_kept_apart() -> None:
    (tile,) = tiles(access(0, ((1, 8),), partitions=8))
    out, store, direct = tile.sink(buffered=True)
    out()[...] = 3
    assert not direct and not tile.window.any()
    store()
    assert (tile.window == 3).all()


@pytest.mark.parametrize("seen", [["bfloat16"], ["bfloat16", "uint16"]])
def test_narrow_types_are_rounded_when_stored(seen: list[str]) -> None:
    """The same elements, whether memory is decoded or bytes."""
    patterns = [access(0, ((2, 4),), dtype, partitions=8) for dtype in seen]
    tile = tiles(*patterns)[0]
    assert (tile.grid is None) is (len(seen) == 2)
    out, store, direct = tile.sink()
    out()[...] = 1 / 3
    store()
    assert not direct and (tile.load()() == np.float32(0.333984375)).all()
    assert (tile.bits() == 0x3EAB).all()


def test_without_precision_decoded_memory_keeps_float32() -> None:
    (tile,) = tiles(access(0, ((1, 4),), "bfloat16", partitions=8), precise=False)
    out, store, direct = tile.sink()
    out()[...] = 1 / 3
    store()
    assert direct and (tile.load()() == np.float32(1 / 3)).all()
    assert (tile.bits() == 0x3EAB).all()  # values that leave as bits are rounded


def test_bits_go_in_and_out_of_decoded_memory_unchanged() -> None:
    """NaN with any payload, subnormals, both zeros: every bit pattern."""
    pattern = access(0, ((1, 64),), "bfloat16", partitions=8)
    for start in range(0, 1 << 16, 512):
        (tile,) = tiles(pattern)
        codes = (np.arange(512) + start).astype(np.uint16).reshape(8, 64)
        tile.put_bits(codes)
        assert np.array_equal(tile.bits(), codes)


@pytest.mark.parametrize(
    ("other", "overlaps"),
    [
        (access(0, ((1, 8),), start=4, partitions=4), False),  # other partitions
        (access(0, ((1, 8),), start=3, partitions=2), True),
        (access(0, ((1, 8),), partitions=4, offset=8), False),  # beside it
        (access(0, ((1, 8),), partitions=4, offset=7), True),
        (access(0, ((-1, 8),), partitions=4, offset=14), True),
        (access(0, ((1, 16),), "uint16", partitions=4, offset=14), True),
    ],
)
def test_tiles_that_may_share_bytes(other: PatternRecord, overlaps: bool) -> None:
    one, two = tiles(access(0, ((1, 8),), partitions=4), other)
    assert one.overlaps(two) is two.overlaps(one) is overlaps
    assert one.straddles([two]) is overlaps and not one.straddles([one])


def test_tiles_of_different_regions_do_not_meet() -> None:
    records = [tensor("float32", (8,), buffer=HBM), tensor("float32", (8,), buffer=HBM)]
    patterns = [access(n, ((1, 8),)) for n in (0, 1)]
    memory = Memory(executable(records, patterns))
    one, two = (Tile(memory, p).bound() for p in patterns)
    assert not one.overlaps(two) and one.partitions == 1 and one.sizes == (8,)


def test_memory_may_be_seen_in_a_shape_that_needs_a_copy() -> None:
    (tile,) = tiles(access(0, ((16, 4), (1, 6)), partitions=8))
    for column in range(6):
        tile.window[..., column] = column
    found = tile.seen_as((3, 8))()
    assert found.shape == (8, 3, 8) and found[0].ravel().tolist() == list(range(6)) * 4
    assert np.shares_memory(tile.seen_as((2, 2, 6))(), tile.window)


def test_scratch_arrays_differ_within_a_step_and_serve_all_steps() -> None:
    scratch = Scratch()
    first, second = scratch.floats((4, 8)), scratch.floats((4, 8))
    assert not np.shares_memory(first, second)
    scratch.begin()
    assert np.shares_memory(scratch.array((8,), np.int32), first)
    scratch.begin()
    assert scratch.floats((4, 8)) is first


def test_scratch_grows_by_doubling() -> None:
    """However many sizes are requested, the kept memory is a few times the largest."""
    scratch, kept = Scratch(), {}
    for size in range(1, 2000):
        scratch.begin()
        array = scratch.floats((size,))
        while array.base is not None:
            array = array.base
        kept[id(array)] = array
    assert sum(a.nbytes for a in kept.values()) <= 4 * 2000 * 4
