"""Test dma_compute: sums of tiles of any shape, type and memory; rejected calls."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from nkic.machine.costs import dma_computing, dma_copying
from nkic.machine.operands import Facts
from nkic.machine.targets import TRN2
from tests.harness.instruction import call, run, run_one, tile
from tests.harness.reference import numpy_type, stored
from tests.unit.instances import facts_of

Array = NDArray[Any]
RNG = np.random.default_rng(17)
SHAPES = ((6, 20), (120, 1), (3, 40), (6, 4, 5), (5, 3, 8))
TYPES = ("float32", "bfloat16", "float16", "int8", "uint8", "int32")


def values(*shape: int) -> Array:
    return (RNG.standard_normal(shape) * 20).astype(np.float32)


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
