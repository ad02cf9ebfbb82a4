"""Semantics of the gpsimd engine's index patterns, in 32-bit integers that wrap around."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.operators import ALU
from nkic.machine.targets import PARTITIONS, Engine
from nkic.simulate.numerics.elementwise import INTEGERS, draw, seeded, uniform
from nkic.simulate.numerics.elementwise import Words as States
from nkic.simulate.numerics.reduction import largest, reduce_bits
from nkic.simulate.numerics.reduction import nonzero_with_count as nonzero
from nkic.simulate.numerics.reduction import sequence_bounds as bounds
from nkic.simulate.plans import Decoded, Step, semantics
from nkic.simulate.semantics.binding import Reduction, clamped, result, shape_of, vector, words
from nkic.simulate.semantics.dma import as_held, choosing, constant
from nkic.simulate.tile import Load, Sink, Tile

Array = NDArray[Any]
Words = NDArray[np.int32]
Pattern = tuple[tuple[int, int], ...]


@lru_cache(maxsize=64)
def indices(pattern: Pattern, channel_multiplier: int, partitions: int) -> Words:
    """Return partition x channel_multiplier + the pattern's index, (partitions, elements)."""
    index = np.zeros(1, np.int64)
    for step, num in pattern:
        index = (index[:, None] + step * np.arange(num)).reshape(-1)
    rows = np.arange(partitions)[:, None] * channel_multiplier
    wrapped: Words = (rows + index).astype(np.int32)
    return wrapped


def _computed(decoded: Decoded, dst: Tile) -> Callable[[], Words]:
    """Return the function that computes the indices, including the offset."""
    key = decoded.attributes["pattern"], decoded.attributes["channel_multiplier"], dst.partitions
    numbers = decoded.scratch.array((dst.partitions, dst.free), np.int32)

    def compute() -> Words:
        offset = decoded.read("offset") & 0xFFFFFFFF
        np.add(indices(*key), np.uint32(offset).astype(np.int32), out=numbers)
        return numbers

    return compute


@semantics("iota")
def iota(decoded: Decoded) -> Step:
    dst = decoded.tile("dst")
    compute = _computed(decoded, dst)
    if not dst.dtype.is_integer:
        return lambda: dst.put(compute().astype(np.float32))
    lowest, highest = int(dst.dtype.lowest), int(dst.dtype.highest)

    def step() -> None:
        within = np.clip(compute().astype(np.int64), lowest, highest)
        np.copyto(dst.window, within.reshape(dst.shape), casting="unsafe")

    return step


@semantics("affine_select")
def affine_select(decoded: Decoded) -> Step:
    dst = decoded.tile("dst")
    compute, compare = _computed(decoded, dst), INTEGERS[decoded.attributes["cmp_op"]]
    load, otherwise, (out, store, _), shape = _choices(decoded)
    flags = decoded.scratch.array((dst.partitions, dst.free), np.bool_)
    mask, zero, choose = flags.reshape(shape), np.zeros((), np.int32), choosing(otherwise.itemsize)
    decoded.selected["on_true_tile"] = lambda: flags

    def step() -> None:
        compare(compute(), zero, flags)
        choose(mask, load(), otherwise, out())
        store()

    return step


def _choices(decoded: Decoded) -> tuple[Load, Array, Sink, tuple[int, ...]]:
    """Return the source, the fill value, the sink and the shape; raw bits within one type."""
    dst, source = decoded.tile("dst"), decoded.tile("on_true_tile")
    value, sizes = decoded.attributes["on_false_value"], shape_of(decoded, "dst", "on_true_tile")
    if dst.dtype is not source.dtype:
        number = np.array(value, np.float32)
        return source.load(sizes), number, result(decoded, sizes), dst.shape_in(sizes)
    sizes = sizes or dst.sizes
    load, fill = as_held(source, dst, sizes), constant(dst, value)
    return load, fill, dst.bit_sink(sizes), dst.shape_in(sizes)


# ---- Semantics of the gpsimd engine's rows that gather, search and reduce in SBUF ---------------
# Gathers move bits. An index beyond the last element is clamped to it (assumed; the documentation
# leaves it undefined).

CORE = 16  # partitions of one GpSimd core


@semantics("nc_n_gather")
def nc_n_gather(decoded: Decoded) -> Step:
    dst, data = decoded.tile("dst"), decoded.tile("data")
    load = as_held(data, dst, (data.free,))
    places, last = decoded.tile("indices").seen_as((dst.free,)), data.free - 1
    every = np.zeros((data.partitions, 0), np.int64)
    decoded.selected["data"] = lambda: _taken(data, every)

    def step() -> None:
        nonlocal every
        positions = places()
        clamped(decoded, positions, last)
        every = np.minimum(positions, last).astype(np.int64)
        gathered = np.take_along_axis(load(), every, axis=1)
        np.copyto(dst.window, gathered.reshape(dst.shape))

    return step


def _taken(tile: Tile, places: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which elements a gather takes from each partition."""
    mask = np.zeros((tile.partitions, tile.free), np.bool_)
    np.put_along_axis(mask, places, True, axis=1)
    return mask


@semantics("local_gather")
def local_gather(decoded: Decoded) -> Step:
    dst, src, index = decoded.tile("dst"), decoded.tile("src_buffer"), decoded.tile("index")
    run, count = decoded.attributes["num_elem_per_idx"], decoded.attributes["num_valid_indices"]
    load, places = as_held(src, dst, (src.free,)), index.seen_as((index.free,))
    cores, last = src.partitions // CORE, src.free - 1
    within = np.arange(run)
    every = np.zeros((src.partitions, 0), np.int64)
    decoded.selected["src_buffer"] = lambda: _taken(src, every)

    def step() -> None:
        nonlocal every
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


# ---- Semantics of the rows that draw pseudo-random numbers --------------------------------------
# Every engine and target uses XORWOW: one generator per lane of gpsimd, four per lane of vector.
# The vector engine's own generator before NeuronCore-v4 is unpublished, and so are the seeding and
# the order of draws (assumed; docs/fidelity.md).

GENERATORS = {Engine.VECTOR: 4, Engine.GPSIMD: 1}  # per lane


def _states(decoded: Decoded) -> States:
    """Return the engine's generator states, (128, words); initially those of seed 0."""
    generators = GENERATORS[decoded.engine]
    return decoded.state.array("random", lambda: seeded(0, PARTITIONS, generators))


def _lanes(decoded: Decoded, tile: Tile) -> States:
    return _states(decoded)[tile.first : tile.first + tile.partitions]


@semantics("dropout")
def dropout(decoded: Decoded) -> Step:
    """An element is dropped if a number in [0, 1) is less than its probability."""
    dst, data = decoded.tile("dst"), decoded.tile("data")
    lanes, load = _lanes(decoded, data), as_held(data, dst, dst.sizes)
    probability, zero = vector(decoded, "prob", None), constant(dst, 0.0)

    def step() -> None:
        dropped = uniform(draw(lanes, dst.free)) < probability()
        np.copyto(dst.window, np.where(dropped.reshape(dst.shape), zero, load()))

    return step


@semantics("rng")
def rng(decoded: Decoded) -> Step:
    dst = decoded.tile("dst")
    lanes, kind = _lanes(decoded, dst), np.dtype(f"u{dst.dtype.size}")

    def step() -> None:
        bits = draw(lanes, dst.free).astype(kind).view(dst.form.storage)
        np.copyto(dst.window, bits.reshape(dst.shape))

    return step


@semantics("set_rng_seed")
def set_rng_seed(decoded: Decoded) -> Step:
    states, tile = _states(decoded), decoded.tile("src_seeds")

    def step() -> None:
        (seed,) = np.ascontiguousarray(tile.bits()).view(np.uint32).ravel()
        states[...] = seeded(int(seed), PARTITIONS, GENERATORS[decoded.engine])

    return step


@semantics("rand2")
def rand2(decoded: Decoded) -> Step:
    """min + (max - min) u, u in [0, 1), each operation rounded to float32; at most max."""
    dst = decoded.tile("dst")
    lanes, (out, store, _) = _lanes(decoded, dst), result(decoded)
    low, high = vector(decoded, "min", None), vector(decoded, "max", None)

    def step() -> None:
        numbers = uniform(draw(lanes, dst.free))
        low_values, high_values = low(), high()
        scaled = low_values + (high_values - low_values) * numbers
        np.minimum(scaled, high_values, out=out())
        store()

    return step


@semantics("rand_set_state")
def rand_set_state(decoded: Decoded) -> Step:
    seeds = decoded.tile("src_seeds")
    lanes, load = _lanes(decoded, seeds), seeds.seen_as((seeds.free,))
    return lambda: np.copyto(lanes, load())


@semantics("rand_get_state")
def rand_get_state(decoded: Decoded) -> Step:
    dst = decoded.tile("dst")
    lanes = _lanes(decoded, dst)
    return lambda: np.copyto(dst.window, lanes.reshape(dst.shape))
