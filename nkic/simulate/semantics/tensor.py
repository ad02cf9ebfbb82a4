"""Meanings of the tensor engine's rows.

Sources: `nki.isa.nc_matmul` (accumulation, transpose mode, double row: the pair's second
member holds rows 128 to 255 of the contraction), `nki.isa.nc_transpose`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from nkic.simulate.decode import Decoded, Step, semantics
from nkic.simulate.numerics.matmul import matmul
from nkic.simulate.numerics.vector import transpose
from nkic.simulate.semantics.binding import Floats, Load
from nkic.simulate.tile import Tile


@semantics("nc_matmul")
def nc_matmul(decoded: Decoded) -> Step:
    stationary, moving = decoded.tile("stationary"), decoded.tile("moving")
    dst, accumulate = decoded.tile("dst"), bool(decoded.attributes["accumulate"])
    if decoded.attributes["perf_mode"] == "double_row":
        left, right = _double(stationary), _double(moving)
    else:
        left, right = stationary.source().load, moving.source().load
    product = _product(dst, left, right, accumulate)
    if not decoded.attributes["is_transpose"]:
        return product
    move = _transpose_step(dst, stationary)
    return lambda: move() if _is_identity(right()) else product()


def _product(dst: Tile, left: Load, right: Load, accumulate: bool) -> Step:
    sink = dst.sink()
    if not accumulate or sink.direct:

        def direct() -> None:
            matmul(left(), right(), sink.out, accumulate)
            sink.store()

        return direct
    before = dst.source().load

    def step() -> None:
        np.copyto(sink.out, before())
        matmul(left(), right(), sink.out, True)
        sink.store()

    return step


def _double(tile: Tile) -> Load:
    """(K, 2, N) as (2 K, N): the first members of all pairs, then the second."""
    load = tile.source().load

    def stacked() -> Floats:
        values = load()
        half = values.shape[1] // 2
        return np.concatenate((values[:, :half], values[:, half:]))

    return stacked


def _is_identity(values: Floats) -> bool:
    rows, columns = values.shape
    return rows == columns and bool(np.array_equal(values, np.eye(rows, dtype=np.float32)))


@semantics("nc_transpose")
def nc_transpose(decoded: Decoded) -> Step:
    return _transpose_step(decoded.tile("dst"), decoded.tile("data"))


def _transpose_step(dst: Tile, data: Tile) -> Step:
    """dst = data.T, bit for bit within one type."""
    if dst.dtype is data.dtype and not data.is_float32:

        def bits() -> None:
            rows = data.bits().reshape(data.partitions, data.free)
            dst.put_bits(np.ascontiguousarray(rows.T))

        return bits
    load, sink = data.source().load, dst.sink()
    moved: NDArray[np.float32] = np.empty((data.free, data.partitions), np.float32)

    def step() -> None:
        transpose(load(), moved)
        sink.out[...] = moved
        sink.store()

    return step
