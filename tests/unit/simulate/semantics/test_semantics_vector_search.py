"""Test instructions that find 8 values in each partition, or move partitions."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.harness.instruction import call, run, run_one, tile
from tests.harness.reference import numpy_type

Array = NDArray[Any]


def found_indices(row: Array, wanted: Array, downwards: bool) -> list[int]:
    """Pair equal values as documented, position by position, in plain Python."""
    places: list[int] = [-1] * 8
    left = {i: float(x) for i, x in enumerate(row)}
    for slot in reversed(range(8)) if downwards else range(8):
        place = next((i for i, x in left.items() if x == wanted[slot]), -1)
        places[slot] = place
        left.pop(place, None)
    return places


def many(dtype: str = "float32") -> tuple[Array, Array]:
    """Draw few different values, so that they repeat; some of the searched values do not occur."""
    rng = np.random.default_rng(0)
    data = rng.integers(0, 9, (40, 24)).astype(numpy_type(dtype))
    vals = rng.integers(0, 11, (40, 8)).astype(numpy_type(dtype))
    return data, vals


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int16"])
@pytest.mark.parametrize("index", ["uint32", "uint16"])
def test_find_index8_gives_successive_occurrences(dtype: str, index: str) -> None:
    data, vals = many(dtype)
    found = run_one(
        "nc_find_index8",
        dst=tile((40, 8), dtype=index),
        data=tile(data.reshape(40, 4, 6)),
        vals=tile(vals.reshape(40, 2, 4)),
    )
    expected = [found_indices(*pair, downwards=False) for pair in zip(data, vals, strict=True)]
    np.testing.assert_array_equal(found, np.array(expected).astype(index))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("imm", [-3.0, float("-inf")])
@pytest.mark.parametrize("in_place", [False, True])
def test_match_replace8(dtype: str, imm: float, in_place: bool) -> None:
    data, vals = many(dtype)
    x = tile(data)
    dst = x if in_place else tile((40, 24))
    places = tile((40, 8), dtype="uint32")
    outcome = run(
        [
            call(
                "nc_match_replace8",
                dst=dst,
                data=x,
                vals=tile(vals),
                imm=imm,
                dst_idx=places,
            )
        ]
    )
    pairs = zip(data, vals, strict=True)
    expected = np.array([found_indices(*pair, downwards=True) for pair in pairs])
    np.testing.assert_array_equal(outcome[places], expected.astype(np.uint32))
    replaced = data.astype(np.float32)
    for row, at in zip(replaced, expected, strict=True):
        row[at[at >= 0]] = imm
    np.testing.assert_array_equal(outcome[dst].astype(np.float32), replaced)


def test_the_published_example_of_equal_values() -> None:
    data = np.array([[1, 2, 3, 4, 8, 8, 8, 8, 8, 8, 8]], np.float32)
    vals, places = np.array([[3, 8, 8, 8, 8, 8, 8, 8]], np.float32), tile((1, 8), dtype="uint16")
    outcome = run(
        [
            call(
                "nc_match_replace8",
                dst=tile(data.shape),
                data=tile(data),
                vals=tile(vals),
                imm=0.0,
                dst_idx=places,
            )
        ]
    )
    assert outcome[places].tolist() == [[2, 10, 9, 8, 7, 6, 5, 4]]
    up = run_one("nc_find_index8", dst=places.like(), data=tile(data), vals=tile(vals))
    assert up.tolist() == [[2, 4, 5, 6, 7, 8, 9, 10]]


def test_match_replace8_without_indices() -> None:
    data, vals = many()
    found = run_one(
        "nc_match_replace8", dst=tile((40, 24)), data=tile(data), vals=tile(vals), imm=0.5
    )
    assert ((found == data) | (found == 0.5)).all() and (found == 0.5).sum() > 100


MASKS = {
    "turned": [*range(1, 32), 0],
    "first": [0] * 32,
    "some": [255, 5, 255, 31] * 8,
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8"])
@pytest.mark.parametrize("in_place", [False, True])
def test_shuffle_moves_partitions_within_their_quadrant(
    mask: str, dtype: str, in_place: bool
) -> None:
    rng = np.random.default_rng(1)
    before, data = (rng.integers(0, 200, (64, 6)).astype(numpy_type(dtype)) for _ in range(2))
    src = tile(data)
    dst = src if in_place else tile(before, buffer="psum", start=64)
    found = run_one("nc_stream_shuffle", dst=dst, src=src, shuffle_mask=tuple(MASKS[mask]))
    expected = (data if in_place else before).copy()
    for partition in range(64):
        entry = MASKS[mask][partition % 32]
        if entry != 255:
            expected[partition] = data[partition // 32 * 32 + entry]
    np.testing.assert_array_equal(found, expected)


def test_shuffle_broadcasts_one_partition() -> None:
    data = np.arange(6, dtype=np.float32)[None]
    found = run_one(
        "nc_stream_shuffle",
        dst=tile((20, 2, 3), start=96),
        src=tile(data),
        shuffle_mask=(0,) * 32,
    )
    np.testing.assert_array_equal(found.reshape(20, 6), np.repeat(data, 20, axis=0))


def test_shuffle_moves_bits() -> None:
    data = np.array([[0x7F800001, 0xFFC12345]], np.uint32)
    src = tile(data).over(dtype="float32")
    found = run_one("nc_stream_shuffle", dst=tile((32, 2)), src=src, shuffle_mask=(0,) * 32)
    assert (found.view(np.uint32) == data).all()
