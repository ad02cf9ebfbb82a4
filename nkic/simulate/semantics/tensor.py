"""Semantics of the tensor engine's rows.

`is_stationary_onezero` and `is_moving_onezero` are hints, `tile_position` and `tile_size` select a
part of the array: none of them affects a value. Sources: `nki.isa.nc_matmul` (accumulation,
transpose mode, double row: the pair's second member holds rows 128 to 255 of the contraction),
`nki.isa.nc_transpose`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nkic.machine.engines import Engine
from nkic.simulate.decode import Decoded, Step, semantics
from nkic.simulate.numerics.matmul import Factor, matmul
from nkic.simulate.numerics.vector import transpose
from nkic.simulate.semantics.binding import Floats
from nkic.simulate.semantics.copying import as_held
from nkic.simulate.semantics.summing import Product
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
    rows, columns = values.shape
    return rows == columns and np.array_equal(values, np.eye(rows, dtype=np.float32))


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
