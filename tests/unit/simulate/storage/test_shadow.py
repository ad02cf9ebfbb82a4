"""Test which bytes have been written: granules, takeovers, and uninitialised parts of an access."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nkic.artifact.records import PatternRecord, TensorRecord
from nkic.machine.patterns import repeats
from nkic.simulate.memory import Memory
from nkic.simulate.shadow import Shadow
from tests.harness.memories import HBM, access, executable, tensor

TILE = tensor("float32", (128, 64))


def shadow_of(*accesses: PatternRecord, tensors: tuple[TensorRecord, ...] = (TILE,)) -> Shadow:
    program = executable(tensors, accesses)
    return Shadow(program, Memory(program))


def part(low: int, size: int, *, start: int = 0, partitions: int = 128) -> PatternRecord:
    return access(0, ((1, size),), offset=low, start=start, partitions=partitions)


def test_a_tile_that_is_always_whole_has_one_flag() -> None:
    whole = part(0, 64)
    shadow = shadow_of(whole)
    assert shadow.flags[0].array.size == 1
    read, write = shadow.reader(whole), shadow.writer(whole)
    assert read() is False
    write()
    assert read() is True


def test_half_of_a_tile_is_not_all_of_it() -> None:
    whole, left, right = part(0, 64), part(0, 32), part(32, 32)
    shadow = shadow_of(whole, left, right)
    shadow.writer(left)()
    assert shadow.reader(left)() and not shadow.reader(right)() and not shadow.reader(whole)()
    assert shadow.missing(whole) == (1, 2)
    shadow.writer(right)()
    assert shadow.reader(whole)() and shadow.missing(whole) == (0, 2)


def test_partitions_are_told_apart() -> None:
    whole, low = part(0, 64), part(0, 64, partitions=32)
    high = part(0, 64, start=64, partitions=64)
    shadow = shadow_of(whole, low, high)
    shadow.writer(high)()
    assert not shadow.reader(whole)() and not shadow.reader(low)()
    assert shadow.missing(whole) == (2, 4)  # in quarters: 32 partitions
    shadow.writer(low)()
    assert shadow.missing(whole) == (1, 4)


def test_another_type_sees_the_same_bytes() -> None:
    halves = access(0, ((2, 64),), "uint16", partitions=128)  # the low half of every word
    whole = part(0, 64)
    shadow = shadow_of(whole, halves)
    shadow.writer(halves)()
    assert not shadow.reader(whole)() and shadow.missing(whole) == (64, 128)


def test_bytes_that_another_tensor_took_over_are_unwritten() -> None:
    """One after the other on the same bytes; a third tensor, beside them, is not affected."""
    tensors = (TILE, tensor("float32", (128, 32), 128), tensor("float32", (128, 8), 256))
    accesses = [
        access(0, ((1, 64),), partitions=128),
        access(1, ((1, 32),), partitions=128),
        access(2, ((1, 8),), partitions=128),
    ]
    shadow = shadow_of(*accesses, tensors=tensors)
    for pattern in (accesses[0], accesses[2], accesses[1]):
        shadow.writer(pattern)()
    assert [shadow.reader(p)() for p in accesses] == [False, True, True]
    shadow.writer(accesses[0])()
    assert [shadow.reader(p)() for p in accesses] == [True, False, True]


def test_tensors_on_other_partitions_do_not_take_over() -> None:
    tensors = (tensor("float32", (64, 8)), tensor("float32", (64, 8), partition=64))
    accesses = [access(n, ((1, 8),), partitions=64) for n in (0, 1)]
    shadow = shadow_of(*accesses, tensors=tensors)
    for pattern in accesses:
        shadow.writer(pattern)()
    assert all(shadow.reader(p)() for p in accesses)


def test_what_is_given_is_written() -> None:
    given, other = tensor("float32", (8,), buffer=HBM), tensor("float32", (8,), buffer=HBM)
    accesses = [access(n, ((1, 4),), offset=2) for n in (0, 1)]
    shadow = shadow_of(*accesses, tensors=(given, other))
    shadow.fill(0)
    assert [shadow.reader(p)() for p in accesses] == [True, False]


@st.composite
def accesses(draw: st.DrawFn) -> PatternRecord:
    """Draw any access to a tensor of 8 partitions of 24 words: steps of all signs, and halves."""
    dtype, unit = draw(st.sampled_from([("float32", 1), ("uint16", 2), ("uint8", 4)]))
    room = 24 * unit
    dims, reach = [], 0
    for _ in range(draw(st.integers(1, 3))):
        num = draw(st.integers(1, 4))
        step = draw(st.integers(0, (room - 1 - reach) // 3))  # at most three steps
        reach += step * (num - 1)
        dims.append((step * draw(st.sampled_from([1, -1])), num))
    low = draw(st.integers(0, room - 1 - reach))
    offset = low + sum(-s * (n - 1) for s, n in dims if s < 0)
    start = draw(st.integers(0, 7))
    count = draw(st.integers(1, 8 - start))
    return access(0, dims, dtype, start=start, partitions=count, offset=offset)


def touched(pattern: PatternRecord) -> tuple[np.ndarray, ...]:
    """Return the index of every byte, by the definition of a pattern."""
    size, places = pattern.dtype.size, [pattern.offset]
    for step, num in pattern.dims:
        places = [place + i * step for place in places for i in range(num)]
    columns = [place * size + byte for place in places for byte in range(size)]
    return np.ix_(range(pattern.start, pattern.start + pattern.partitions), columns)


@given(st.lists(st.tuples(accesses(), st.booleans()), min_size=1, max_size=8))
@settings(max_examples=60)
def test_granules_say_what_single_bytes_would(sequence: list[tuple[PatternRecord, bool]]) -> None:
    """A flag for every byte, set by definition, agrees at every read and write."""
    record = tensor("float32", (8, 24))
    shadow = shadow_of(*(pattern for pattern, _ in sequence), tensors=(record,))
    flags = np.zeros((8, 96), np.bool_)
    for pattern, writes in sequence:
        known = flags[touched(pattern)]
        assert shadow.reader(pattern)() == known.all()
        missing, total = shadow.missing(pattern)
        assert (missing == 0) == known.all() and (missing == total) == (not known.any())
        if writes:
            shadow.writer(pattern)()
            flags[touched(pattern)] = True


@given(st.lists(st.tuples(accesses(), st.integers(0, 2**16)), min_size=1, max_size=8))
@settings(max_examples=60)
def test_elements_say_what_single_bytes_would(sequence: list[tuple[PatternRecord, int]]) -> None:
    """The same if only some elements of an access become initialised."""
    record = tensor("float32", (8, 24))
    shadow = shadow_of(*(pattern for pattern, _ in sequence), tensors=(record,))
    flags = np.zeros((8, 96), np.bool_)
    for pattern, seed in sequence:
        shape, size = shadow.shape_of(pattern), pattern.dtype.size
        known = flags[touched(pattern)].reshape(*shape, size).all(axis=-1)
        assert np.array_equal(shadow.elements(pattern), known)
        if not repeats(pattern.dims):
            mask = np.random.default_rng(seed).random(shape) < seed % 4 / 3
            shadow.set_elements(pattern, mask)
            flags[touched(pattern)] = mask.repeat(size, axis=1)
