"""Test transfers: any shape to any other, casts, permutations."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nkic.base.diagnostics import ArtifactFailed
from tests.harness.instruction import Call, built, run_one, tile
from tests.harness.reference import same, stored

Array = NDArray[Any]
RNG = np.random.default_rng(13)
NUMBERS = RNG.standard_normal((6, 20)).astype(np.float32)


def moved(row: str, **values: Any) -> Array:
    return run_one(row, engine="dma", **values)


@pytest.mark.parametrize(
    ("shape", "steps"),
    [
        ((120,), (1,)),
        ((6, 20), (25, 1)),
        ((3, 40), (1, 3)),
        ((8, 15), (-15, 1)),
        ((5, 3, 8), (24, 8, 1)),
    ],
)
@pytest.mark.parametrize("inside", [(6, 20), (6, 4, 5), (40, 3), (12, 2, 5)])
def test_dma_copy_keeps_the_order_of_elements(
    shape: tuple[int, ...], steps: tuple[int, ...], inside: tuple[int, ...]
) -> None:
    """Dimensions and numbers of partitions differ on both sides."""
    outside = tile(NUMBERS.reshape(shape), buffer="hbm", steps=steps)
    chip = tile(NUMBERS[::-1].reshape(inside), start=2)
    assert np.array_equal(moved("dma_copy", dst=chip, src=outside).ravel(), NUMBERS.ravel())
    assert np.array_equal(moved("dma_copy", dst=outside, src=chip).ravel(), NUMBERS[::-1].ravel())


def test_dma_copy_within_each_memory() -> None:
    for buffer in ("hbm", "sbuf"):
        src = tile(NUMBERS, buffer=buffer)
        dst = tile((20, 6), buffer=buffer)
        assert np.array_equal(moved("dma_copy", dst=dst, src=src).ravel(), NUMBERS.ravel())


@pytest.mark.parametrize(
    ("to", "step", "start", "by"),
    [(3, 1, 0, 1), (0, 1, 3, 1), (19, -1, 0, 1), (10, 1, 0, 2), (0, 2, 10, 1)],
)
def test_dma_copy_within_one_tensor_reads_before_it_writes(
    to: int, step: int, start: int, by: int
) -> None:
    whole = tile(np.arange(64, dtype=np.float32), buffer="hbm")
    dst = whole.over(offset=to, dims=((step, 20),))
    src = whole.over(offset=start, dims=((by, 20),))
    found = moved("dma_copy", dst=dst, src=src).ravel()
    assert np.array_equal(found, start + by * np.arange(20))


@pytest.mark.parametrize("given", ["float32", "bfloat16", "float8_e5m2", "int32", "uint8"])
@pytest.mark.parametrize("wanted", ["float32", "float16", "float8_e4m3", "int8", "bool"])
def test_dma_copy_casts_through_float32(given: str, wanted: str) -> None:
    src = tile(NUMBERS * 100, dtype=given, buffer="hbm")
    before = src.window(src.tensor.contents)
    found = moved("dma_copy", dst=tile((20, 6), dtype=wanted), src=src)
    same(found, stored(before.astype(np.float32), wanted))


@pytest.mark.parametrize("dtype", ["float8_e4m3fn_x4", "float4_e2m1fn_x4", "int32"])
def test_dma_copy_of_one_type_moves_bits(dtype: str) -> None:
    kind = "u2" if dtype.startswith("float4") else "u4"
    words = RNG.integers(0, 2**32, (6, 20), np.uint32).astype(kind)
    src = tile(words if dtype != "int32" else words.view(np.int32), dtype=dtype, buffer="hbm")
    found = moved("dma_copy", target="trn3", dst=tile((6, 20), dtype=dtype), src=src)
    assert np.array_equal(found.view(kind), words)


@pytest.mark.parametrize(
    "hint",
    [
        {"dge_mode": "none"},
        {"dge_mode": "swdge"},
        {"dge_mode": "hwdge", "engine": "scalar"},
        {"priority": 3},
        {"oob_mode": "skip"},
    ],
)
def test_who_makes_descriptors_changes_no_value(hint: dict[str, Any]) -> None:
    src = tile(NUMBERS, buffer="hbm")
    dst = tile((6, 20))
    step = Call("dma_copy", {"dst": dst, "src": src, **hint}, "dma")
    assert np.array_equal(built([step], "trn3").run()[dst], NUMBERS)


ITERATIONS: dict[tuple[int, ...], tuple[int, ...]] = {
    (16, 20): (1, 0),
    (4, 5, 6): (2, 1, 0),
    (3, 4, 5, 6): (3, 1, 2, 0),
}


@pytest.mark.parametrize("shape", sorted(ITERATIONS))
@pytest.mark.parametrize("buffer", ["hbm", "sbuf"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "uint16"])
@pytest.mark.parametrize("named", [False, True])
def test_dma_transpose(shape: tuple[int, ...], buffer: str, dtype: str, named: bool) -> None:
    axes = ITERATIONS[shape]
    values = RNG.integers(0, 200, shape).astype(np.float32)
    src, dst = (
        tile(values, dtype=dtype, buffer=buffer),
        tile(tuple(shape[a] for a in axes), dtype=dtype),
    )
    found = moved("dma_transpose", dst=dst, src=src, axes=axes if named else None)
    same(found, stored(values.transpose(axes), dtype))


def test_dma_transpose_by_hardware() -> None:
    src, dst = (
        tile(NUMBERS[:, :4].repeat(3, 0)[:16], dtype="bfloat16"),
        tile((4, 16), dtype="bfloat16"),
    )
    found = moved("dma_transpose", dst=dst, src=src, dge_mode="hwdge")
    assert np.array_equal(found, src.window(src.tensor.contents).T)


@pytest.mark.parametrize(
    ("axes", "dst", "message"),
    [
        ((0, 1), (20, 6), r"`axes` is \[0, 1\]"),
        (None, (6, 20), "`dst` is"),
        (None, (20, 6, 1), "`dst` is"),
    ],
)
def test_other_permutations_and_shapes_are_refused(
    axes: tuple[int, ...] | None, dst: tuple[int, ...], message: str
) -> None:
    """Release notes of NKI 0.4.0: dst has the transposed shape, rank included."""
    with pytest.raises(ArtifactFailed, match=message):
        moved("dma_transpose", dst=tile(dst), src=tile(NUMBERS), axes=axes)


def test_all_is_read_before_any_is_overwritten() -> None:
    """dst begins three elements into src (assumed; docs/fidelity.md)."""
    x = tile(NUMBERS, room=3)
    dst = x.over(offset=3, dims=((1, 20),))
    assert np.array_equal(moved("dma_copy", dst=dst, src=x), NUMBERS)
    y = tile(NUMBERS[:, :6])
    assert np.array_equal(moved("dma_transpose", dst=y, src=y), NUMBERS[:, :6].T)


def test_long_transfers_may_be_cast_over_themselves() -> None:
    """Casts process blocks, but all elements are read before any is written."""
    values = np.arange(100_000, dtype=np.float32)
    x = tile(values, buffer="hbm", room=50_000)
    dst = x.over(dtype="int32", offset=50_000)
    assert np.array_equal(moved("dma_copy", dst=dst, src=x)[0], values)
