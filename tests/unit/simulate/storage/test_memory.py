"""Test regions: bytes that tensors share, regions that are kept decoded, and arrays of inputs."""

import mmap
from math import prod

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nkic.artifact.records import PatternRecord
from nkic.machine.dtypes import DTYPES
from nkic.simulate import memory
from nkic.simulate import memory as storage
from nkic.simulate.memory import ALIGN, Arena, Memory, Scratch, recycled
from nkic.simulate.tile import Tile, refined
from tests.harness.memories import HBM, access, executable, tensor

ROW = ((1, 8),)


def test_tensors_share_a_region_if_their_bytes_touch() -> None:
    """0-32, 16-48 and 40-72 form a chain; 72-104 begins where they end; PSUM is separate."""
    tensors = [tensor("float32", (4, 8), byte) for byte in (0, 16, 40, 72)]
    tensors.append(tensor("float32", (4, 8), 0, "psum"))
    accesses = [access(n, ROW, partitions=4) for n in range(5)]
    memory = Memory(executable(tensors, accesses))
    regions = [memory.homes[n].region for n in range(5)]
    assert regions[0] is regions[1] is regions[2]
    assert len({id(r) for r in regions}) == 3
    assert regions[0].array.shape == (4, 72) and regions[3].array.shape == (4, 32)


def test_what_overlaps_on_the_device_overlaps_here() -> None:
    """A float32 at byte 4 of partition 2 is the bytes 0 to 3 of another tensor."""
    tensors = [tensor("float32", (4, 3), 0), tensor("uint8", (2, 4), 4, partition=2)]
    words = access(0, ((1, 3),), partitions=4)
    octets = access(1, ((1, 4),), "uint8", partitions=2)
    memory = Memory(executable(tensors, [words, octets]))
    memory.window(words)[2, 1] = np.float32(1.5)
    assert memory.window(octets)[0].tobytes() == np.float32(1.5).tobytes()
    memory.window(octets)[1] = 0xFF
    assert np.isnan(memory.window(words)[3, 1]) and memory.window(words)[3, 0] == 0


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8_e4m3", "float8_e5m2"])
def test_a_region_of_one_narrow_float_is_kept_decoded(dtype: str) -> None:
    both = [tensor(dtype, (4, 8), 0), tensor(dtype, (4, 8), 8)]
    accesses = [access(n, ROW, dtype, partitions=4) for n in (0, 1)]
    memory = Memory(executable(both, accesses))
    assert memory.homes[0].region.grid is DTYPES[dtype]
    memory.window(accesses[0])[1] = np.arange(8)
    shared = 8 // DTYPES[dtype].size  # elements of the first tensor before the second begins
    assert memory.window(accesses[1])[1, : 8 - shared].tolist() == list(range(shared, 8))


@pytest.mark.parametrize(
    ("tensors", "seen"),
    [
        (["float32"], ["float32"]),  # as wide as its decoded form
        (["bfloat16"], ["bfloat16", "uint16"]),
        (["bfloat16"], ["uint16"]),
        (["bfloat16", "float16"], []),  # neighbours whose bytes overlap
        (["bfloat16", "float32"], []),
        (["int16"], ["int16"]),
    ],
)
def test_every_other_region_is_bytes(tensors: list[str], seen: list[str]) -> None:
    records = [tensor(dtype, (4, 8), 4 * n) for n, dtype in enumerate(tensors)]
    accesses = [access(0, ((1, 4),), dtype, partitions=4) for dtype in seen]
    accesses += [access(n, ((1, 4),), d, partitions=4) for n, d in enumerate(tensors)]
    region = Memory(executable(records, accesses)).homes[0].region
    assert region.grid is None and region.array.dtype == np.uint8


def test_a_tensor_that_is_given_has_its_own_type_as_well() -> None:
    """Constants and inputs have their declared type, whatever accesses them."""
    records = [tensor("uint16", (8,), buffer=HBM), tensor("bfloat16", (8,), buffer=HBM)]
    seen = [access(n, ROW, "bfloat16") for n in (0, 1)]
    given = {n: np.arange(8, dtype=np.uint16) + 0x3F80 for n in (0, 1)}
    memory = Memory(executable(records, seen), given)
    assert memory.homes[0].region.grid is None and memory.homes[1].region.grid is not None
    decoded = given[1].view(ml_dtypes.bfloat16).astype(np.float32)
    assert np.array_equal(memory.window(seen[1])[0], decoded)
    assert np.array_equal(memory.window(seen[0])[0], given[0])


def test_inputs_are_the_callers_arrays_unless_something_writes_them() -> None:
    records = [tensor("float32", (8,), buffer=HBM) for _ in range(2)]
    read, written = access(0, ROW), access(1, ROW)
    given = {n: np.arange(8, dtype=np.float32) for n in (0, 1)}
    memory = Memory(executable(records, [(written, read)], inputs=(0, 1)), given)
    assert np.shares_memory(memory.window(read), given[0])
    assert not memory.window(read).flags.writeable
    memory.window(written)[...] = 0
    assert given[1][1] == 1 and given[0].flags.writeable


@pytest.mark.parametrize(("dtype", "words"), [("bfloat16", np.uint16), ("float8_e4m3", np.uint8)])
def test_a_large_tensor_is_not_decoded(
    dtype: str, words: type[np.generic], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one below the limit has four bytes for each element; the other one is the caller's."""
    tensors = [tensor(dtype, (1, size), 0, HBM) for size in (64, 128)]
    accesses = [access(n, ROW, dtype, partitions=1) for n in (0, 1)]
    given = {n: np.arange(size).astype(words) for n, size in ((0, 64), (1, 128))}
    monkeypatch.setattr(storage, "LARGE", 128 * np.dtype(words).itemsize)
    memory = Memory(executable(tensors, accesses), given)
    assert memory.homes[0].region.array.nbytes == 64 * 4
    assert np.shares_memory(memory.homes[1].region.array, given[1])
    assert memory.contents_of(1, rounded=True).tobytes() == given[1].tobytes()


def test_windows_step_backwards_and_stand_still() -> None:
    record = tensor("int16", (8, 20))
    pattern = access(0, ((5, 2), (-1, 3), (0, 2)), "int16", start=3, partitions=2, offset=9)
    memory = Memory(executable([record], [pattern]))
    whole = memory.homes[0].region.array.view(np.int16)
    whole[...] = np.arange(160).reshape(8, 20)
    found = memory.window(pattern)
    assert found.shape == (2, 2, 3, 2)
    assert found[0, :, :, 0].tolist() == [[69, 68, 67], [74, 73, 72]]
    assert found[1, 1, 2].tolist() == [92, 92]


def test_a_pattern_without_dimensions_is_one_element() -> None:
    record, pattern = tensor("float32", (4, 8)), access(0, (), partitions=4, offset=3)
    assert Memory(executable([record], [pattern])).window(pattern).shape == (4, 1)


def test_elements_are_aligned_wherever_a_region_begins() -> None:
    records = [tensor("uint8", (4, 6), 9), tensor("float32", (4, 2), 12)]
    seen = [access(0, ((1, 6),), "uint8", partitions=4), access(1, ((1, 2),), partitions=4)]
    memory = Memory(executable(records, seen))
    assert all(memory.window(p).flags.aligned for p in seen)
    assert memory.homes[0].region.array.strides[0] % ALIGN == 0
    memory.window(seen[0])[:, 3:] = 7  # bytes 12 to 14
    assert (memory.window(seen[1]).view(np.uint8)[:, :4] == [7, 7, 7, 0]).all()


def test_results_are_rounded_where_they_were_kept_wide() -> None:
    record, pattern = tensor("bfloat16", (8,), buffer=HBM), access(0, ROW, "bfloat16")
    memory = Memory(executable([record], [pattern], outputs=(0,)))
    memory.window(pattern)[...] = np.float32(1 / 3)
    expected = ml_dtypes.bfloat16(1 / 3).view(np.uint16)
    assert (memory.contents_of(0, rounded=False) == expected).all()
    nan = np.array(0x7F810000, np.uint32).view(np.float32)  # signalling, with a payload
    np.copyto(memory.window(pattern), nan)
    assert (memory.contents_of(0, rounded=True) == 0x7F81).all()


# ------------------------------------------------------------------------------------------------
# Test zeroed arrays that are allocated side by side.


def test_arrays_of_an_arena_are_zero_and_do_not_overlap() -> None:
    arena = Arena()
    made = [arena.zeros(rows, 1000, np.float32) for rows in (1, 300, 2, 700, 128)]
    for number, array in enumerate(made, 1):
        assert not array.any()
        array[...] = number
    assert [int(array[0, 0]) for array in made] == [1, 2, 3, 4, 5]
    assert all((array == number).all() for number, array in enumerate(made, 1))
    assert all(array.__array_interface__["data"][0] % memory.LINE == 0 for array in made)


def test_an_arena_grows_beyond_what_it_asked_for_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "RESERVED", 1 << 16)
    arena = Arena()
    made = [arena.zeros(1, size, np.uint8) for size in (1 << 15, 1 << 15, 1 << 20, 8)]
    assert [array.size for array in made] == [1 << 15, 1 << 15, 1 << 20, 8]
    assert not any(array.any() for array in made)


def test_neighbours_do_not_share_a_place_within_pages() -> None:
    arena = Arena()
    places = [arena.zeros(128, 512, np.float32).__array_interface__["data"][0] for _ in range(4)]
    assert len({place % mmap.PAGESIZE for place in places}) == 4


def test_without_huge_pages_an_arena_is_numpy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(mmap, "MADV_HUGEPAGE", raising=False)
    assert Arena().zeros(2, 3, np.float32).tolist() == [[0, 0, 0], [0, 0, 0]]


def test_pages_of_results_are_kept_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MAX_KEPT", 3 * memory.SMALL)
    monkeypatch.setattr(memory, "_kept", [])
    sizes = [memory.SMALL, 2 * memory.SMALL, 2 * memory.SMALL + 8, 4 * memory.SMALL]
    held = [recycled(1, size, np.uint8) for size in sizes[:2]]
    assert [len(kept.memory) for kept in memory._kept] == sizes[:2]
    held.append(recycled(1, sizes[2], np.uint8))
    assert [len(kept.memory) for kept in memory._kept] == sizes[2:3]
    held.append(recycled(1, sizes[3], np.uint8))  # more than the limit
    assert memory._kept == []
    for number, array in enumerate(held, 1):
        array[...] = number
    assert all((array == number).all() for number, array in enumerate(held, 1))


# ------------------------------------------------------------------------------------------------
# Test tiles: windows of a common shape, conversions, and delayed writes.


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
