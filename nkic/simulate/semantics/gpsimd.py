"""Semantics of the gpsimd engine's index patterns, in 32-bit integers that wrap around."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.simulate.decode import Decoded, Step, semantics
from nkic.simulate.numerics.alu import INTEGERS
from nkic.simulate.semantics.binding import result, shape_of
from nkic.simulate.semantics.copying import as_held, choosing, constant
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
