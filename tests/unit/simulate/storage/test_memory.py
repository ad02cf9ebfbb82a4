"""Test regions: bytes that tensors share, regions that are kept decoded, and arrays of inputs."""

import ml_dtypes
import numpy as np
import pytest

from nkic.machine.dtypes import DTYPES
from nkic.simulate import memory as storage
from nkic.simulate.memory import ALIGN, Memory
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
