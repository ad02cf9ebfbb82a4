"""Models of the DMA engines: copies, transposes and sums, between HBM and SBUF and within each."""

from typing import Any

from numpy.typing import NDArray

from nkic.machine.operands import Row
from tests.harness.drawing import Draw
from tests.harness.model import Bits, Given, Results, Settings, Shape, model
from tests.harness.operators import apply

Array = NDArray[Any]
SHAPES = ((6, 20), (120, 1), (3, 40), (40, 3), (8, 15))


def rearranged(draw: Draw, row: Row, settings: Settings) -> dict[str, Shape]:
    """Draw tiles of 120 elements: partitions of one side are any dimension of the other."""
    if "engine" in settings and draw.chance(0.4):
        settings["dge_mode"], settings["engine"] = "hwdge", draw.pick(["unknown", "sync", "scalar"])
    return {o.name: draw.pick(SHAPES) for o in row.operands}


def flat(given: Given, name: str) -> Array:
    return given.numbers(name).ravel()


@model("dma_copy", rearranged, silent=("priority", "oob_mode", "dge_mode", "engine"))
def dma_copy(given: Given) -> Results:
    dst = given.elements("dst")
    if given.dtype("dst") == given.dtype("src"):
        return {"dst": Bits(given.elements("src").reshape(dst.shape))}
    return {"dst": given.rounded("dst", flat(given, "src").reshape(dst.shape))}


def transposed(draw: Draw, row: Row, settings: Settings) -> dict[str, Shape]:
    rank = draw.integer(2, 4)
    axes = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}[rank]
    settings["axes"] = draw.pick([None, axes])
    settings["dge_mode"] = draw.pick(["unknown", "unknown", "hwdge"])
    shape = [draw.integer(1, 6) for _ in axes]
    if settings["dge_mode"] == "hwdge":
        shape = [16, *shape[1:]] if rank == 2 else [draw.pick([1, 2, 4, 8, 16]), *shape[1:]]
        shape[-2] = shape[-2] if rank == 2 else 16
    return {"src": tuple(shape), "dst": tuple(shape[axis] for axis in axes)}


@model("dma_transpose", transposed, silent=("priority", "dge_mode", "oob_mode"))
def dma_transpose(given: Given) -> Results:
    of = given.tile("src")
    shape = of.shape[1:] if of.tensor.buffer == "hbm" else of.shape
    axes = given["axes"] or {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}[len(shape)]
    found = given.elements("src").reshape(shape).transpose(axes)
    return {"dst": Bits(found.reshape(given.elements("dst").shape))}


def summed(draw: Draw, row: Row, settings: Settings) -> dict[str, Shape]:
    """Draw this number of sources, one after another."""
    count = draw.pick([1, 2, 3, 7, 16])
    for i in range(count, 16):
        settings[f"src{i}"] = None
    settings["reduce_op"] = "add"
    settings["scales"] = draw.pick([None, (1.0,) * count])
    return {"dst": draw.pick(SHAPES), **{f"src{i}": draw.pick(SHAPES) for i in range(count)}}


@model("dma_compute", summed, silent=("scales", "unique_indices", "oob_mode", "reduce_op"))
def dma_compute(given: Given) -> Results:
    """Add in float32, first source to last."""
    names = [f"src{i}" for i in range(16) if given[f"src{i}"] is not None]
    total = flat(given, names[0])
    for name in names[1:]:
        total = apply("add", total, flat(given, name))
    return {"dst": given.rounded("dst", total.reshape(given.elements("dst").shape))}
