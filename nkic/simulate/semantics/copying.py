"""Moving elements from place to place: exact within one type, through float32 between two.

Source: `nki.isa.tensor_copy`, `nki.isa.dma_copy` (data types).
"""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.simulate.decode import Step
from nkic.simulate.tile import Tile

Array = NDArray[Any]


def copy_step(dst: Tile, src: Tile) -> Step:
    """Copies all elements in order, whatever the two shapes are."""
    if dst.dtype is not src.dtype:
        return _converting(dst, src)
    if dst.is_float32 is not src.is_float32:
        return lambda: dst.put_bits(src.bits())
    to, given = aligned(dst.window(), src.window())
    if to.shape == given.shape:
        return lambda: np.copyto(to, given)
    return lambda: np.copyto(to, np.ascontiguousarray(given).reshape(to.shape))


def _converting(dst: Tile, src: Tile) -> Step:
    load, sink = src.source().load, dst.sink()

    def step() -> None:
        sink.out[...] = np.ascontiguousarray(load()).reshape(sink.out.shape)
        sink.store()

    return step


def fill_step(dst: Tile, value: float) -> Step:
    """Writes one number everywhere, exactly where dst is of integers."""
    window = dst.window()
    if not dst.is_float32:
        element = dst.element(value)
        return lambda: np.copyto(window, element)
    sink = dst.sink(dst.sizes)

    def step() -> None:
        sink.out[...] = value
        sink.store()

    return step


def aligned(a: Array, b: Array) -> tuple[Array, Array]:
    """The arrays as views of one shape, if splitting dimensions can make it so."""
    if a.shape == b.shape:
        return a, b
    ends = sorted({e for x in (a, b) for e in _ends(x.shape)}, reverse=True)
    if any(outer % inner for outer, inner in pairwise(ends)):
        return a, b
    sizes = [outer // inner for outer, inner in pairwise([*ends, 1])]
    return split(a, sizes), split(b, sizes)


def _ends(shape: tuple[int, ...]) -> list[int]:
    return [e for i in range(len(shape)) if (e := prod(shape[i:])) > 1]


def split(array: Array, sizes: list[int]) -> Array:
    """A view of `array` with dimensions of `sizes`, which refine its own."""
    rest = [(s, n) for s, n in zip(array.strides, array.shape, strict=True) if n > 1]
    step, left = rest.pop() if rest else (array.itemsize, 1)
    strides = []
    for size in reversed(sizes):
        if left == 1 and rest:
            step, left = rest.pop()
        strides.append(step)
        step, left = step * size, left // size
    view: Array = np.lib.stride_tricks.as_strided(array, tuple(sizes), strides[::-1])
    return view
