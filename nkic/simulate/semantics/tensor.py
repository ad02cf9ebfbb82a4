"""Semantics of the tensor engine's rows.

`is_stationary_onezero` and `is_moving_onezero` are hints, `tile_position` and `tile_size` select a
part of the array: none of them affects a value. Sources: `nki.isa.nc_matmul` (accumulation,
transpose mode, double row: the pair's second member holds rows 128 to 255 of the contraction),
`nki.isa.nc_transpose`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.codecs import decode, pack, unpack
from nkic.machine.targets import Engine
from nkic.simulate.numerics.elementwise import transpose
from nkic.simulate.numerics.matmul import LANES, Doubles, Factor, dequantized, matmul, quantized
from nkic.simulate.plans import Decoded, Step, semantics
from nkic.simulate.semantics.binding import Floats, Product
from nkic.simulate.semantics.dma import as_held
from nkic.simulate.tile import Load, Tile

Multiply = Callable[[Factor, Factor, Floats, bool], None]
BIT_ACCURATE = 3  # the first NeuronCore version whose transpose moves bits


@semantics("nc_matmul")
def nc_matmul(decoded: Decoded) -> Step:
    stationary, moving = decoded.tile("stationary"), decoded.tile("moving")
    dst, accumulate = decoded.tile("dst"), bool(decoded.attributes["accumulate"])
    if decoded.attributes["perf_mode"] == "double_row":
        left, right = _double(stationary), _double(moving)
    else:
        left, right = stationary.load(), moving.load()
    compute = product(dst, left, right, accumulate, Product(decoded))
    if accumulate or not decoded.attributes["is_transpose"] or not _moves_bits(decoded):
        return compute
    move = _transposing(dst, stationary)
    return lambda: move() if _is_identity(right()) else compute()


def _moves_bits(decoded: Decoded) -> bool:
    return decoded.target.generation >= BIT_ACCURATE


def product(
    dst: Tile,
    left: Callable[[], Factor],
    right: Callable[[], Factor],
    accumulate: bool,
    multiply: Multiply = matmul,
) -> Step:
    """Return the step dst = left.T @ right; with `accumulate`, added to dst in float32."""
    out, store, direct = dst.sink()
    if direct or not accumulate:

        def fresh() -> None:
            multiply(left(), right(), out(), accumulate)
            store()

        return fresh
    before = dst.load()

    def step() -> None:
        sums = out()
        np.copyto(sums, before())
        multiply(left(), right(), sums, True)
        store()

    return step


def _double(tile: Tile) -> Load:
    """Return a function that loads (K, 2, N) as (2 K, N): the first members, then the second."""
    load = tile.load()
    half = tile.free // 2
    stacked = tile.memory.scratch.floats((2 * tile.partitions, half))

    def both() -> Floats:
        values = load()
        stacked[: tile.partitions] = values[:, :half]
        stacked[tile.partitions :] = values[:, half:]
        return stacked

    return both


def _is_identity(values: Floats) -> bool:
    return np.array_equal(values, np.eye(len(values), dtype=np.float32))


@semantics("nc_transpose")
def nc_transpose(decoded: Decoded) -> Step:
    """On NeuronCore-v2 the tensor engine multiplies by an identity matrix, which spreads NaN."""
    dst, data = decoded.tile("dst"), decoded.tile("data")
    if decoded.engine is Engine.TENSOR and data.dtype.is_float and not _moves_bits(decoded):
        identity = np.eye(data.partitions, dtype=np.float32)
        return product(dst, data.load(), lambda: identity, False)
    return _transposing(dst, data)


def _transposing(dst: Tile, data: Tile) -> Step:
    """Return the step dst = data.T: the same bits within one type, else through float32."""
    if dst.dtype is data.dtype:
        return _exchanging(dst, data)
    load, (out, store, _) = data.load(), dst.sink()

    def step() -> None:
        transpose(load(), out())
        store()

    return step


def _exchanging(dst: Tile, data: Tile) -> Step:
    load = as_held(data, dst, (data.free,))
    moved = dst.memory.scratch.array((dst.partitions, dst.free), dst.form.storage)
    shaped = moved.reshape(dst.shape)

    def step() -> None:
        transpose(load(), moved)
        np.copyto(dst.window, shaped)

    return step


# ------------------------------------------------------------------------------------------------
# Semantics of the microscaling rows. Sources: `nki.isa.quantize_mx`, `nki.isa.nc_matmul_mx`.

Codes = NDArray[np.uint8]


@semantics("quantize_mx")
def quantize_mx(decoded: Decoded) -> Step:
    """Partitions of dst_scale that hold no scale of src are unchanged."""
    dst, scale, load = decoded.tile("dst"), decoded.tile("dst_scale"), decoded.tile("src").load()
    element = dst.dtype.element
    if element is None:
        raise TypeError(f"{dst.dtype} is not packed")
    headroom = bool(decoded.attributes["headroom"])
    rows, shape = scale_rows(dst), (-1, *scale.sizes)

    def step() -> None:
        elements, codes = quantized(load(), element, headroom)
        dst.put_bits(pack(elements, dst.dtype))
        stored: NDArray[Any] = codes if scale.grid is None else decode(codes, scale.grid)
        scale.window[rows] = stored.reshape(shape)

    return step


@semantics("nc_matmul_mx")
def nc_matmul_mx(decoded: Decoded) -> Step:
    """`tile_position` and `tile_size` select a part of the array and do not affect values."""
    left, right = (
        mx_numbers(decoded.tile(name), decoded.tile(f"{name}_scale"))
        for name in ("stationary", "moving")
    )
    accumulate = bool(decoded.attributes["accumulate"])
    return product(decoded.tile("dst"), left, right, accumulate, Product(decoded))


def scale_rows(data: Tile) -> list[int]:
    """Return the partitions of the scales of `data`, relative to their first: four of each 32."""
    return [p for p in range(data.partitions) if p % 32 < 4]


def mx_numbers(data: Tile, scale: Tile) -> Callable[[], Doubles]:
    """Return a function that loads the numbers of a packed tile, (4 K, columns).

    Its rows are the first elements of all packed ones, then the second ones, and so on.
    """
    rows, flat = scale_rows(data), (data.partitions, data.free)

    def load() -> Doubles:
        elements = unpack(data.bits().reshape(flat), data.dtype)
        codes = scale.bits()[rows].view(np.uint8).reshape(len(rows), data.free)
        numbers = dequantized(elements, codes).reshape(*flat, LANES)
        return numbers.transpose(2, 0, 1).reshape(LANES * data.partitions, data.free)

    return load
