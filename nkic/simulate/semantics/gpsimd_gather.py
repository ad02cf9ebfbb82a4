"""Semantics of the gpsimd engine's rows that gather, search and reduce in SBUF.

Gathers move bits. An index beyond the last element is clamped to it (assumed; the documentation
leaves it undefined).
"""

from __future__ import annotations

import numpy as np

from nkic.machine.operators import ALU
from nkic.simulate.decode import Decoded, Step, semantics
from nkic.simulate.numerics.reduction import reduce_bits
from nkic.simulate.numerics.runs import nonzero_with_count as nonzero
from nkic.simulate.numerics.runs import sequence_bounds as bounds
from nkic.simulate.numerics.search import largest
from nkic.simulate.semantics.binding import words
from nkic.simulate.semantics.copying import as_held
from nkic.simulate.semantics.summing import Reduction
from nkic.simulate.semantics.validity import clamped

CORE = 16  # partitions of one GpSimd core


@semantics("nc_n_gather")
def nc_n_gather(decoded: Decoded) -> Step:
    dst, data = decoded.tile("dst"), decoded.tile("data")
    load = as_held(data, dst, (data.free,))
    places, last = decoded.tile("indices").seen_as((dst.free,)), data.free - 1

    def step() -> None:
        positions = places()
        clamped(decoded, positions, last)
        gathered = np.take_along_axis(load(), np.minimum(positions, last).astype(np.int64), axis=1)
        np.copyto(dst.window, gathered.reshape(dst.shape))

    return step


@semantics("local_gather")
def local_gather(decoded: Decoded) -> Step:
    dst, src, index = decoded.tile("dst"), decoded.tile("src_buffer"), decoded.tile("index")
    run, count = decoded.attributes["num_elem_per_idx"], decoded.attributes["num_valid_indices"]
    load, places = as_held(src, dst, (src.free,)), index.seen_as((index.free,))
    cores, last = src.partitions // CORE, src.free - 1
    within = np.arange(run)

    def step() -> None:
        # Down the columns of a core's 16 partitions, truncated; one run for each index.
        firsts = places().reshape(cores, CORE, -1).transpose(0, 2, 1).reshape(cores, -1)[:, :count]
        elements = (firsts[:, :, None].astype(np.int64) + within).reshape(cores, -1)
        clamped(decoded, elements, last)
        every = np.repeat(np.minimum(elements, last), CORE, axis=0)
        gathered = np.take_along_axis(load(), every, axis=1)
        np.copyto(dst.window, gathered.reshape(dst.shape))

    return step


@semantics("tensor_partition_reduce")
def tensor_partition_reduce(decoded: Decoded) -> Step:
    op, data, dst = decoded.attributes["op"], decoded.tile("data"), decoded.tile("dst")
    if ALU[op].group == "bitvec":
        raw, into = words(data, data.sizes), words(dst, dst.sizes)

        def bits() -> None:
            values, out = raw(), into()
            total = np.empty(data.free, values.dtype)
            reduce_bits(op, values.reshape(data.partitions, -1).T, total)
            np.copyto(out, total.reshape(out.shape))

        return bits
    load, total = data.load(), decoded.scratch.floats((data.free,))
    reduce = Reduction(decoded, op)

    def step() -> None:
        reduce(load().T, total)
        dst.put(total)

    return step


@semantics("sequence_bounds")
def sequence_bounds(decoded: Decoded) -> Step:
    """Integers are compared as integers."""
    ids, dst = decoded.tile("segment_ids"), decoded.tile("dst")
    load = ids.seen_as((ids.free,))
    return lambda: np.copyto(dst.window, bounds(load()[0]).reshape(dst.shape), casting="unsafe")


@semantics("topk")
def topk(decoded: Decoded) -> Step:
    """All 16 partitions of a core get the largest of their elements."""
    src, values = decoded.tile("src"), decoded.tile("val_dst")
    places, count = decoded.tile("idx_dst"), decoded.attributes["n"]
    load, cores = src.load((src.free,)), src.partitions // CORE

    def step() -> None:
        snakes = load().reshape(cores, CORE, -1).transpose(0, 2, 1).reshape(cores, -1)[:, :count]
        order = largest(snakes, values.free)
        gathered = np.take_along_axis(snakes, order, axis=1)
        values.put(np.repeat(gathered, CORE, axis=0))
        every = np.repeat(order, CORE, axis=0).reshape(places.shape)
        np.copyto(places.window, every, casting="unsafe")

    return step


@semantics("nonzero_with_count")
def nonzero_with_count(decoded: Decoded) -> Step:
    """Only the first of each core's 16 partitions is used; the others are unchanged."""
    src, dst = decoded.tile("src"), decoded.tile("dst")
    offset, padding = decoded.attributes["index_offset"], decoded.attributes["padding_val"]
    load, rows = src.seen_as((src.free,)), slice(-src.first % CORE, None, CORE)

    def step() -> None:
        into = dst.window[rows]
        indices = nonzero(load()[rows], offset, padding)
        np.copyto(into, indices.reshape(into.shape), casting="unsafe")

    return step
