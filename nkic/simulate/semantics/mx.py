"""Semantics of the microscaling rows. Sources: `nki.isa.quantize_mx`, `nki.isa.nc_matmul_mx`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.codecs import decode, pack, unpack
from nkic.simulate.decode import Decoded, Step, semantics
from nkic.simulate.numerics.matmul import Doubles
from nkic.simulate.numerics.microscaling import LANES, dequantized, quantized
from nkic.simulate.semantics.summing import Product
from nkic.simulate.semantics.tensor import product
from nkic.simulate.tile import Tile

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
