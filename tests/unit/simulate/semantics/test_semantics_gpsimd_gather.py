"""Test the gpsimd engine's instructions that gather, search and reduce."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.harness.instruction import call, run, run_one, tile
from tests.harness.reference import numpy_type, stored

Array = NDArray[Any]


def values(*shape: int, seed: int = 0, dtype: str = "float32") -> Array:
    return (20 * np.random.default_rng(seed).standard_normal(shape)).astype(numpy_type(dtype))


def indices(high: int, *shape: int, dtype: str = "uint32") -> Array:
    return np.random.default_rng(3).integers(0, high, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_nc_n_gather_takes_from_its_own_partition(dtype: str) -> None:
    x, at = values(40, 4, 6, dtype=dtype), indices(24, 40, 30)
    found = run_one(
        "nc_n_gather",
        dst=tile((40, 5, 6), dtype=dtype),
        data=tile(x, steps=(7, 1)),
        indices=tile(at),
    )
    expected = [row.ravel()[places] for row, places in zip(x, at, strict=True)]
    np.testing.assert_array_equal(found.reshape(40, 30), np.array(expected))


def test_nc_n_gather_moves_bits() -> None:
    x = tile(np.array([[0x7F800001, 5]], np.uint32)).over(dtype="float32")
    found = run_one(
        "nc_n_gather", dst=tile((1, 2)), data=x, indices=tile(np.array([[1, 0]], np.uint32))
    )
    assert found.view(np.uint32).tolist() == [[5, 0x7F800001]]


def test_an_index_beyond_the_end_takes_the_last_element() -> None:
    x, at = values(1, 4), np.array([[3, 4, 2**32 - 1]], np.uint32)
    found = run_one("nc_n_gather", dst=tile((1, 3)), data=tile(x), indices=tile(at))
    assert (found == x[0, 3]).all()


@pytest.mark.parametrize("run", [1, 2, 4])
@pytest.mark.parametrize("count", [None, 37])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_local_gather(run: int, count: int | None, dtype: str) -> None:
    x = values(48, 40, dtype=dtype)
    at = indices(40 - run, 48, 3, dtype="uint16")
    number = 48 if count is None else count
    found = run_one(
        "local_gather",
        dst=tile((48, number * run), dtype=dtype),
        src_buffer=tile(x),
        index=tile(at),
        num_elem_per_idx=run,
        num_valid_indices=count,
    )
    expected = np.empty((48, number, run), x.dtype)
    for core in range(3):
        flat = [int(at[16 * core + i % 16, i // 16]) for i in range(number)]
        for partition in range(16 * core, 16 * core + 16):
            for place, first in enumerate(flat):
                expected[partition, place] = x[partition, first : first + run]
    np.testing.assert_array_equal(found, expected.reshape(48, -1))


@pytest.mark.parametrize(
    ("op", "fold"), [("add", np.sum), ("average", np.mean), ("maximum", np.max)]
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_partitions_are_reduced(op: str, fold: Callable[..., Any], dtype: str) -> None:
    x = values(40, 3, 5, dtype=dtype)
    found = run_one(
        "tensor_partition_reduce", dst=tile((1, 15), dtype="float16"), op=op, data=tile(x)
    )
    expected = fold(x.astype(np.float64), axis=0).reshape(1, 15)
    np.testing.assert_array_equal(found, stored(expected, "float16"))


@pytest.mark.parametrize(
    ("op", "fold"), [("bitwise_or", np.bitwise_or), ("bitwise_and", np.bitwise_and)]
)
@pytest.mark.parametrize("dtype", ["uint32", "int8"])
def test_bits_of_partitions_are_reduced(op: str, fold: np.ufunc, dtype: str) -> None:
    size = np.dtype(dtype).itemsize
    rng = np.random.default_rng(5)
    x = rng.integers(0, 256, (3, 7 * size), dtype=np.uint8).view(dtype)
    found = run_one("tensor_partition_reduce", dst=tile((1, 7), dtype=dtype), op=op, data=tile(x))
    np.testing.assert_array_equal(found, fold.reduce(x, axis=0)[None])


def bounds(ids: list[int]) -> list[list[int]]:
    """Compute the bounds element by element, like the published loop."""
    n = len(ids)
    starts, ends = [n] * n, [-1] * n
    for i, own in enumerate(ids):
        if own != 0:
            starts[i] = starts[i - 1] if i and ids[i - 1] == own else i
    for i, own in reversed(list(enumerate(ids))):
        if own != 0:
            ends[i] = ends[i + 1] if i + 1 < n and ids[i + 1] == own else i + 1
    return [starts, ends]


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize(
    "ids",
    [
        [0, 1, 1, 2, 2, 2, 0, 3, 3],
        [5],
        [0],
        [4, 4, 4, 4],
        [1, 0, 1, 0, 0, 1],
        np.random.default_rng(0).integers(0, 4, 200).tolist(),
    ],
    ids=["published", "one", "padding", "same", "apart", "random"],
)
def test_sequence_bounds(dtype: str, ids: list[int]) -> None:
    found = run_one(
        "sequence_bounds",
        dst=tile((1, 2, len(ids)), dtype=dtype),
        segment_ids=tile(np.array([ids], dtype)),
    )
    assert found[0].tolist() == bounds(ids)


def test_large_segment_ids_are_told_apart() -> None:
    ids = np.array([[2**24, 2**24 + 1]], np.int32)
    found = run_one("sequence_bounds", dst=tile((1, 4), dtype="int32"), segment_ids=tile(ids))
    assert found.tolist() == [[0, 1, 1, 2]]


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize(("offset", "padding"), [(0, -1), (16, 7), (2**31 - 1, -(2**31))])
def test_nonzero_with_count(dtype: str, offset: int, padding: int) -> None:
    rng = np.random.default_rng(1)
    x = (rng.integers(-1, 2, (40, 9)) * rng.integers(1, 99, (40, 9))).astype(dtype)
    x[16] = 0
    before = rng.integers(0, 99, (40, 10)).astype(np.int32)
    found = run_one(
        "nonzero_with_count",
        dst=tile(before),
        src=tile(x),
        index_offset=offset,
        padding_val=padding,
    )
    expected = before.astype(np.int64)
    for row in (0, 16, 32):
        places = [i + offset for i in range(9) if x[row, i] != 0]
        expected[row] = [*places, *[padding] * (9 - len(places)), len(places)]
    np.testing.assert_array_equal(found, expected.astype(np.int32))


def test_the_published_example_of_nonzero_with_count() -> None:
    x = np.array([[0, 1, 1, 0, 0, 1, 0, 0]], np.float32)
    found = run_one(
        "nonzero_with_count", dst=tile((1, 9), dtype="int32"), src=tile(x), index_offset=16
    )
    assert found.tolist() == [[17, 18, 21, -1, -1, -1, -1, -1, 3]]


@pytest.mark.parametrize(("n", "k"), [(42, 8), (48, 48), (8, 1), (40, 13)])
def test_topk_of_the_snakes_of_16_partitions(n: int, k: int) -> None:
    x = np.rint(values(32, 3, dtype="bfloat16").astype(np.float32) / 4).astype(
        numpy_type("bfloat16")
    )
    best, places = tile((32, k), dtype="bfloat16"), tile((32, k), dtype="uint32")
    step = call("topk", val_dst=best, idx_dst=places, src=tile(x, dtype="bfloat16"), n=n)
    found = run([step])
    for core in range(2):
        snake = [float(x[16 * core + i % 16, i // 16]) for i in range(n)]
        order = sorted(range(n), key=lambda i: (-snake[i], i))[:k]
        order.sort(key=lambda i: (snake[i], i))
        for row in range(16 * core, 16 * core + 16):
            assert found[places][row].tolist() == order
            assert found[best][row].astype(float).tolist() == [snake[i] for i in order]
