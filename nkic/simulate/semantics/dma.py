"""Semantics of transfers. Sources: `nki.isa.dma_copy`, `nki.isa.dma_transpose`.

`priority`, `dge_mode` and `engine` tell when and by which engine descriptors are made; they do not
affect values. `axes` repeats the only permutation of each rank; the rules reject others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.codecs import decode, encode, round_to_grid, storage
from nkic.simulate.numerics.elementwise import select
from nkic.simulate.plans import Decoded, Step, semantics
from nkic.simulate.tile import Sizes, Tile, refined

# ---- Copies of elements: exact within one type, through float32 between two ---------------------
# Source: `nki.isa.tensor_copy`, `nki.isa.dma_copy` (data types).

Array = NDArray[Any]


def copy_step(dst: Tile, src: Tile) -> Step:
    """Return a step that copies all elements in order, for any two shapes."""
    if dst.dtype is not src.dtype:
        return _converting(dst, src)
    if dst.grid is not src.grid:  # the same elements, decoded on one side only
        return lambda: dst.put_bits(src.bits())
    shape = dst.shape
    if dst.overlaps(src):  # np.copyto does not check for overlap in one dimension
        return lambda: np.copyto(dst.window, src.window.copy().reshape(shape))
    if src.shape == shape:
        return lambda: np.copyto(dst.window, src.window)
    sizes = refined((shape, src.shape))
    if sizes is not None:
        return lambda: np.copyto(dst.window.reshape(sizes), src.window.reshape(sizes))
    return lambda: np.copyto(dst.window, src.window.reshape(shape))


def _converting(dst: Tile, src: Tile) -> Step:
    load = src.load(src.sizes)
    if not dst.overlaps(src):
        return lambda: dst.put(load())
    whole = src.memory.scratch.floats(src.shape)

    def step() -> None:
        np.copyto(whole, load())
        dst.put(whole)

    return step


def as_held(src: Tile, dst: Tile, sizes: Sizes) -> Callable[[], Array]:
    """Return a function that reads `src`, of dst's type, in dst's representation.

    The shape is (partitions, *sizes).
    """
    if dst.grid is src.grid:
        return src.seen_as(sizes)
    shape = (src.partitions, *sizes)
    if dst.grid is None:
        return lambda: src.bits().reshape(shape)
    return lambda: decode(src.bits(), src.dtype).reshape(shape)


def choosing(unit: int) -> Callable[[Array, Array, Array, Array], None]:
    """Return the fastest f(mask, chosen, otherwise, out) for elements of `unit` bytes."""
    return select if unit == 4 else _choose


def _choose(mask: Array, chosen: Array, otherwise: Array, out: Array) -> None:
    np.copyto(out, np.where(mask, chosen, otherwise))


def constant(dst: Tile, value: float) -> Array:
    """Return a float32 in dst's representation: rounded, and saturated for integers."""
    number = np.array(value, np.float32)
    if dst.keeps_float32:
        return number
    if dst.grid is not None:
        return round_to_grid(number, dst.dtype, number)
    return encode(number, dst.dtype)


def fill_step(dst: Tile, value: float) -> Step:
    """Return a step that fills dst with one number, exactly if dst is of integers."""
    if dst.dtype.is_integer or dst.dtype.kind == "packed":
        element: Array = np.array(int(value)).astype(storage(dst.dtype))
    else:
        element = constant(dst, value)
    return lambda: np.copyto(dst.window, element)


# --------------------------------------------------------------------------------------------------

PERMUTATIONS = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}


@semantics("dma_copy")
def dma_copy(decoded: Decoded) -> Step:
    return copy_step(decoded.tile("dst"), decoded.tile("src"))


@semantics("dma_transpose")
def dma_transpose(decoded: Decoded) -> Step:
    dst, src = decoded.tile("dst"), decoded.tile("src")
    load = as_held(src, dst, src.sizes)
    shape = src.shape if src.on_chip else src.sizes
    axes = PERMUTATIONS[len(shape)]

    def step() -> None:
        np.copyto(dst.window, load().reshape(shape).transpose(axes))

    return step


# ---- Semantics of dma_compute. Source: `nki.isa.dma_compute` ------------------------------------
# `scales` are ones. With a vector of indices, dst is one of the sources, and `simulate.dynamic`
# has gathered it before; among equal indices the last one wins (assumed; docs/fidelity.md).


@semantics("dma_compute")
def dma_compute(decoded: Decoded) -> Step:
    """Sums are rounded to float32, in the order of the sources. dst may be one of the sources."""
    dst, *sources = decoded.tiles()
    first, *others = [source.load(source.sizes) for source in sources]
    total = decoded.scratch.floats(dst.shape)

    def step() -> None:
        np.copyto(total, first().reshape(total.shape))
        for load in others:
            np.add(total, load().reshape(total.shape), out=total)
        dst.put(total)

    return step
