"""Test transfers: any shape to any other, casts, permutations."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nkic.base.diagnostics import ArtifactFailed
from nkic.machine.costs import dma_computing, dma_copying
from nkic.machine.operands import Facts
from nkic.machine.targets import TRN2
from tests.harness.instruction import Call, built, call, run, run_one, tile
from tests.harness.reference import numpy_type, same, stored
from tests.unit.instances import facts_of

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


# ------------------------------------------------------------------------------------------------
# Test dma_compute: sums of tiles of any shape, type and memory; rejected calls.

COMPUTE_RNG = np.random.default_rng(17)
SHAPES = ((6, 20), (120, 1), (3, 40), (6, 4, 5), (5, 3, 8))
TYPES = ("float32", "bfloat16", "float16", "int8", "uint8", "int32")


def values(*shape: int) -> Array:
    return (COMPUTE_RNG.standard_normal(shape) * 20).astype(np.float32)


def total(*sources: Array) -> Array:
    """Sum in float32, left to right; each step is the float64 sum of two numbers, rounded."""
    found = sources[0].astype(np.float32)
    for source in sources[1:]:
        found = (found.astype(np.float64) + source.astype(np.float64)).astype(np.float32)
    return found


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int32", "float8_e4m3"])
@pytest.mark.parametrize("count", [1, 2, 3, 7, 16])
def test_sums_of_tiles_of_any_type_shape_and_memory(count: int, dtype: str) -> None:
    sources: dict[str, Any] = {}
    for i in range(count):
        shape, memory = SHAPES[i % 5], ("hbm", "sbuf")[i % 2]
        given = stored(values(120), TYPES[i % 6]).reshape(shape)
        sources[f"src{i}"] = tile(given, dtype=TYPES[i % 6], buffer=memory)
    arrays = [t.window(t.tensor.contents).ravel() for t in sources.values()]
    for memory in ("hbm", "sbuf"):
        dst = tile((12, 10), dtype=dtype, buffer=memory, steps=(21, 2) if memory == "hbm" else (2,))
        found = run_one("dma_compute", engine="dma", dst=dst, reduce_op="add", **sources)
        found = found.reshape(12, 10)  # HBM is one partition
        expected = stored(total(*arrays), dtype).reshape(12, 10)
        assert found.dtype == numpy_type(dtype)
        np.testing.assert_array_equal(found.astype(np.float64), expected.astype(np.float64))


def test_dst_may_be_a_source() -> None:
    """The residual connection of a layer, summed in place, twice."""
    residual, x = values(8, 32), values(8, 32)
    dst, src = tile(residual), tile(x, buffer="hbm")
    add = call(
        "dma_compute", "dma", dst=dst, src0=src, src1=dst, reduce_op="add", scales=(1.0, 1.0)
    )
    found = run([add, add])[dst]
    np.testing.assert_array_equal(found, total(x, total(x, residual)))


def test_dst_may_lie_across_a_source() -> None:
    """All sources are read before dst is written."""
    row = tile(values(4, 12))
    before = row.window(row.tensor.contents).copy()
    left, right = row.over(dims=((1, 8),)), row.over(dims=((1, 8),), offset=3)
    found = run_one("dma_compute", engine="dma", dst=right, src0=left, src1=right, reduce_op="add")
    np.testing.assert_array_equal(found, total(before[:, :8], before[:, 3:11]))


def test_the_cost_is_that_of_a_copy_per_source() -> None:
    _, facts = facts_of("dma_compute")
    dst, *sources = facts.tiles.values()
    copies = [dma_copying(Facts(TRN2, {"src": t, "dst": dst}, {})) for t in sources]
    found = dma_computing(facts)
    assert found.busy_ns == sum(copy.busy_ns for copy in copies) > copies[0].busy_ns > 0
    assert (found.interval, found.latency_ns) == (0, copies[0].latency_ns)
