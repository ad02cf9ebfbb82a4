"""Test the gpsimd engine's rows of index patterns against the documented loops."""

from collections.abc import Callable
from itertools import product
from operator import eq, ge, gt, le, lt, ne
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nkic.base.diagnostics import ArtifactFailed
from tests.harness.instruction import call, run, run_one, tile
from tests.harness.reference import numpy_type, stored

Array = NDArray[Any]
Pattern = tuple[tuple[int, int], ...]
PATTERNS: list[Pattern] = [
    ((1, 24),),
    ((-1, 24),),
    ((0, 24),),
    ((4, 6), (1, 4)),
    ((-10, 2), (3, 3), (-100, 4)),
    ((5, 1), (-7, 2), (1, 3), (2, 4)),
]


def stream(pattern: Pattern, offset: int, multiplier: int, partitions: int) -> list[list[int]]:
    """Compute value = offset + channel_id * channel_multiplier + sum of w * step_w for each
    element.
    """
    rows = []
    for channel in range(partitions):
        places = product(*(range(num) for _, num in pattern))
        steps = [step for step, _ in pattern]
        rows.append(
            [
                offset + channel * multiplier + sum(i * s for i, s in zip(at, steps, strict=True))
                for at in places
            ]
        )
    return rows


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(("offset", "multiplier"), [(0, 0), (7, 100), (-50, -3)])
def test_iota(pattern: Pattern, offset: int, multiplier: int) -> None:
    """dst may have any free dimensions."""
    given: dict[str, Any] = {"pattern": pattern, "offset": offset, "channel_multiplier": multiplier}
    found = run_one("iota", dst=tile((5, 2, 12), dtype="int32", steps=(20, -1)), **given)
    assert found.reshape(5, 24).tolist() == stream(pattern, offset, multiplier, 5)


def test_iota_converts_to_dst_s_type() -> None:
    """Integers are exact and saturate; floats are rounded from float32 (assumed)."""
    given: dict[str, Any] = {"pattern": ((1, 3),), "offset": 2**24 - 1}
    assert run_one("iota", dst=tile((1, 3)), **given).tolist() == [[2**24 - 1, 2**24, 2**24]]
    given = {"pattern": ((100, 5),), "offset": -200}
    for dtype, expected in {
        "int8": [-128, -100, 0, 100, 127],
        "uint8": [0, 0, 0, 100, 200],
        "uint32": [0, 0, 0, 100, 200],
        "bfloat16": [-200, -100, 0, 100, 200],
        "bool": [1, 1, 0, 1, 1],
    }.items():
        assert run_one("iota", dst=tile((1, 5), dtype=dtype), **given).tolist() == [expected]


def test_indices_wrap_at_32_bits() -> None:
    given: dict[str, Any] = {
        "pattern": ((1, 3),),
        "offset": 2**31 - 2,
        "channel_multiplier": 2**31 - 1,
    }
    found = run_one("iota", dst=tile((2, 3), dtype="int32"), **given)
    assert found.tolist() == [[2**31 - 2, 2**31 - 1, -(2**31)], [-3, -2, -1]]


def test_a_pattern_of_another_size_is_refused() -> None:
    with pytest.raises(ArtifactFailed, match="`pattern` counts 6 elements"):
        run_one("iota", dst=tile((2, 5)), pattern=((1, 6),))


COMPARISONS = {
    **{"equal": eq, "not_equal": ne, "greater": gt},
    **{"greater_equal": ge, "less": lt, "less_equal": le},
}


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("op", sorted(COMPARISONS))
def test_affine_select(pattern: Pattern, op: str) -> None:
    """Comparisons of affine values with 0; the default is equal."""
    values = np.arange(1, 97, dtype=np.float32).reshape(4, 24)
    x = tile(values)
    given: dict[str, Any] = {
        "pattern": pattern,
        "channel_multiplier": 5,
        "offset": -6,
        "on_false_value": -1.0,
    }
    found = run_one("affine_select", dst=x.like(), on_true_tile=x, cmp_op=op, **given)
    affine = stream(pattern, -6, 5, 4)
    chosen = [[COMPARISONS[op](value, 0) for value in row] for row in affine]
    assert np.array_equal(found, np.where(chosen, values, -1))
    if op == "equal":
        assert np.array_equal(
            run_one("affine_select", dst=x.like(), on_true_tile=x, **given), found
        )


def test_a_causal_mask_in_place() -> None:
    """Keep the elements on or below the diagonal: partition - column >= 0."""
    scores = np.random.default_rng(3).standard_normal((8, 8)).astype(np.float32)
    for dtype in ("float32", "bfloat16", "int32"):
        x = tile(scores * 100, dtype=dtype)
        given: dict[str, Any] = {
            "pattern": ((-1, 8),),
            "channel_multiplier": 1,
            "cmp_op": "greater_equal",
        }
        found = run_one("affine_select", dst=x, on_true_tile=x, on_false_value=-9984.0, **given)
        before = x.window(x.tensor.contents)
        expected = np.where(np.tri(8, dtype=bool), before, np.array(-9984).astype(before.dtype))
        assert found.tobytes() == expected.tobytes()


def test_on_false_value_is_a_float32_whatever_the_types() -> None:
    """Release notes of NKI 0.6.0: any float, including the least float32. Casts saturate."""
    lowest = float(np.finfo(np.float32).min)
    given: dict[str, Any] = {"pattern": ((1, 2),), "channel_multiplier": 0, "cmp_op": "less"}
    x = tile(np.array([[2**24 + 1, 5]], np.int32))
    for number, dtype, expected in (
        (lowest, "float32", lowest),
        (lowest, "bfloat16", -np.inf),
        (lowest, "int32", -(2**31)),
        (300, "uint8", 255),
        (2**24 + 1, "int32", 2**24),
    ):
        dst = x.like(dtype=dtype)
        found = run_one("affine_select", dst=dst, on_true_tile=x, on_false_value=number, **given)
        assert found.tolist() == [[expected] * 2]


def test_what_is_selected_goes_through_float32_between_types() -> None:
    given: dict[str, Any] = {"pattern": ((0, 2),), "channel_multiplier": 0, "on_false_value": 0.0}
    x = tile(np.array([[2**24 + 1, 5]], np.int32))
    found = run_one("affine_select", dst=x.like(), on_true_tile=x, **given)
    assert found.tolist() == [[2**24 + 1, 5]]
    found = run_one("affine_select", dst=x.like(dtype="uint32"), on_true_tile=x, **given)
    assert found.tolist() == [[2**24, 5]]


def test_offsets_in_registers() -> None:
    """Release notes of NKI 0.4.0: both support them. They are read at each execution."""
    x = tile(np.ones((2, 4), np.float32))
    given: dict[str, Any] = {"pattern": ((1, 4),), "channel_multiplier": 10, "offset": "$0"}
    dsts = [tile((2, 4), dtype="int32") for _ in range(2)]
    chosen = x.like()
    outcome = run(
        [
            call("register_move", "gpsimd", dst="$0", src=-2),
            call("iota", dst=dsts[0], **given),
            call("affine_select", dst=chosen, on_true_tile=x, on_false_value=0, **given),
            call("register_move", "gpsimd", dst="$0", src=5),
            call("iota", dst=dsts[1], **given),
        ]
    )
    assert outcome[dsts[0]].tolist() == [[-2, -1, 0, 1], [8, 9, 10, 11]]
    assert outcome[chosen].tolist() == [[0, 0, 1, 0], [0] * 4]
    assert outcome[dsts[1]].tolist() == [[5, 6, 7, 8], [15, 16, 17, 18]]


# ------------------------------------------------------------------------------------------------
# Test the gpsimd engine's instructions that gather, search and reduce.


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
