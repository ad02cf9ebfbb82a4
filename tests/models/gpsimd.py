"""Models of the GpSimd engine: indices, gathers, reductions over partitions."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.operands import Row
from nkic.machine.operators import ALU
from tests.harness.drawing import Draw
from tests.harness.model import Bits, Given, Results, Settings, Shape, alike, model
from tests.harness.operators import fold, fold_bits
from tests.harness.reference import INTEGER_BITS
from tests.models.vector import copied, cut, unsigned
from tests.models.vector_reduce import COMPARISONS

Array = NDArray[Any]


def patterned(draw: Draw, row: Row, settings: Settings) -> dict[str, Shape]:
    """Draw shapes, and a pattern that counts their elements."""
    shapes = alike(draw, row, settings)
    sizes = draw.factors(shapes["dst"][1], 4)
    settings["pattern"] = tuple((draw.integer(-300, 300), size) for size in sizes)
    settings["offset"] = draw.pick([0, 0, -7, 1000, 2**31 - 3, draw.integer(-40, 40)])
    settings["channel_multiplier"] = draw.pick([0, 1, -1, 7, -500, 2**30])
    return shapes


def affine(given: Given, rows: int) -> Array:
    """Run the documented loop, dimension by dimension, in 32 bits."""
    index = np.int64(given["offset"]) + given["channel_multiplier"] * np.arange(rows)[:, None]
    for step, num in given["pattern"]:
        index = (index[:, :, None] + step * np.arange(num)).reshape(rows, -1)
    return np.asarray(index).astype(np.uint32).astype(np.int32)


@model("iota", patterned)
def iota(given: Given) -> Results:
    found, dtype = affine(given, given.tile("dst").partitions), given.dtype("dst")
    if dtype not in INTEGER_BITS:
        return {"dst": given.rounded("dst", found)}
    info = np.iinfo(dtype)
    return {"dst": np.clip(found.astype(np.int64), info.min, info.max).astype(dtype)}


@model("affine_select", patterned)
def affine_select(given: Given) -> Results:
    taken = COMPARISONS[given["cmp_op"]](affine(given, given.tile("dst").partitions), 0)
    found = copied(given, "on_true_tile")
    elements = found.elements if isinstance(found, Bits) else found
    other = given.rounded("dst", np.array(given["on_false_value"], np.float32))
    return {"dst": np.where(taken, elements, other)}


def _indices(draw: Draw, values: Settings) -> None:
    name, source = ("index", "src_buffer") if "index" in values else ("indices", "data")
    of, data = values[name], values[source]
    window = of.window(of.tensor.contents)
    last = int(np.prod(data.shape[1:])) - values.get("num_elem_per_idx", 1)
    window[...] = draw.rng.integers(0, last + 1, window.shape)


def gathered(draw: Draw, row: Row, settings: Settings) -> dict[str, Shape]:
    partitions, length = draw.pick([1, 3, 32, 40]), draw.pick([1, 7, 24, 600])
    shape = (partitions, length)
    return {"dst": shape, "indices": shape, "data": (partitions, draw.pick([1, 5, 36]))}


@model("nc_n_gather", gathered, fill=_indices)
def nc_n_gather(given: Given) -> Results:
    return {"dst": Bits(np.take_along_axis(given["data"], given["indices"].astype(int), 1))}


def locally(draw: Draw, row: Row, settings: Settings) -> dict[str, Shape]:
    partitions, columns = 16 * draw.pick([1, 2, 3, 4, 8]), draw.integer(1, 4)
    run = settings["num_elem_per_idx"] = draw.pick([1, 2, 4, 8, 16, 32])
    count = settings["num_valid_indices"] = draw.pick([None, draw.integer(1, 16 * columns)])
    given = 16 * columns if count is None else count
    return {
        "dst": (partitions, given * run),
        "src_buffer": (partitions, run + draw.integer(0, 20)),
        "index": (partitions, columns),
    }


@model("local_gather", locally, fill=_indices)
def local_gather(given: Given) -> Results:
    """The index is read down the columns of 16 partitions, in elements of a partition."""
    src, index, run = given["src_buffer"], given["index"], given["num_elem_per_idx"]
    rows = []
    for core in range(0, len(src), 16):
        flat = index[core : core + 16].T.ravel().astype(int)[: given["num_valid_indices"]]
        at = (flat[:, None] + np.arange(run)).ravel()
        rows.append(src[core : core + 16, at])
    return {"dst": Bits(np.concatenate(rows))}


def across(draw: Draw, row: Row, settings: Settings) -> dict[str, Shape]:
    partitions, free = draw.pick([1, 3, 16, 40, 128]), draw.pick([1, 5, 24])
    return {"dst": (1, free), "data": (partitions, free)}


@model("tensor_partition_reduce", across)
def tensor_partition_reduce(given: Given) -> Results:
    op = given["op"]
    if ALU[op].group == "bitvec":
        return {"dst": cut(fold_bits(op, unsigned(given, "data").T), given.dtype("dst"))[None]}
    return {"dst": given.rounded("dst", fold(op, given.numbers("data").T)[None])}


def bounded(draw: Draw, row: Row, settings: Settings) -> dict[str, Shape]:
    free = draw.pick([1, 2, 9, 40])
    return {"dst": (1, 2 * free), "segment_ids": (1, free)}


def _segments(draw: Draw, values: Settings) -> None:
    of = values["segment_ids"]
    window = of.window(of.tensor.contents)
    runs = draw.rng.integers(0, 4, window.size).repeat(draw.rng.integers(1, 5, window.size))
    window[...] = runs[: window.size].reshape(window.shape)


@model("sequence_bounds", bounded, fill=_segments)
def sequence_bounds(given: Given) -> Results:
    """For each element, the start of its run and one past its end."""
    ids = given["segment_ids"][0].tolist()
    n = len(ids)
    starts, ends = [n] * n, [-1] * n
    for i, own in enumerate(ids):
        if own != 0:
            starts[i] = max((j + 1 for j in range(i) if ids[j] != own), default=0)
            ends[i] = min((j for j in range(i, n) if ids[j] != own), default=n)
    return {"dst": given.rounded("dst", np.array([starts + ends], np.float64))}


def counted(draw: Draw, row: Row, settings: Settings) -> dict[str, Shape]:
    partitions, free = draw.pick([1, 16, 17, 40, 128]), draw.pick([1, 8, 24])
    settings["index_offset"] = draw.pick([0, 16, 2**31 - 1])
    settings["padding_val"] = draw.pick([-1, 7, -(2**31)])
    return {"src": (partitions, free), "dst": (partitions, free + 1)}


@model("nonzero_with_count", counted)
def nonzero_with_count(given: Given) -> Results:
    found, src = given["dst"].copy(), given["src"]
    for partition in range(0, len(src), 16):
        there = np.flatnonzero(src[partition]).astype(np.int64) + given["index_offset"]
        row = [*there, *[given["padding_val"]] * (src.shape[1] - len(there)), len(there)]
        found[partition] = np.array(row, np.int64).astype(np.uint32).astype(np.int32)
    return {"dst": found}


def snaked(draw: Draw, row: Row, settings: Settings) -> dict[str, Shape]:
    n = settings["n"] = draw.integer(8, 60)
    partitions, k = draw.pick([16, 32, 128]), draw.integer(1, n)
    columns = -(-n // 16) + draw.pick([0, 0, 2])
    return {"src": (partitions, columns), "val_dst": (partitions, k), "idx_dst": (partitions, k)}


@model("topk", snaked)
def topk(given: Given) -> Results:
    """NaN is largest; of equal elements the first ones are taken (docs/fidelity.md)."""
    src, values, places = given.numbers("src"), [], []
    k = given.elements("val_dst").shape[1]
    for first in range(0, len(src), 16):
        snake = [src[first + i % 16, i // 16] for i in range(given["n"])]
        keys = [(bool(np.isnan(x)), 0.0 if np.isnan(x) else float(x)) for x in snake]
        best = sorted(range(len(snake)), key=lambda i: (not keys[i][0], -keys[i][1], i))[:k]
        best.sort(key=lambda i: (*keys[i], i))
        values += [[snake[i] for i in best]] * 16
        places += [best] * 16
    return {
        "val_dst": given.rounded("val_dst", np.array(values)),
        "idx_dst": np.array(places, np.uint32),
    }
