"""What the meanings of elementwise instructions share: operands of one shape, and numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.codecs import storage
from nkic.machine.operators import ALU
from nkic.simulate.decode import Decoded
from nkic.simulate.numerics.alu import ARITHMETIC
from nkic.simulate.tile import Sizes, Tile, common_sizes

Array = NDArray[Any]
Floats = NDArray[np.float32]
Load = Callable[[], Floats]
Binary = Callable[[Floats, Floats, Floats], Any]
ZERO = np.zeros((), np.float32)


def shape_of(decoded: Decoded, *names: str) -> Sizes | None:
    """Free dimensions that the tiles among these operands can share without a copy."""
    tiles = [t for name in names if (t := decoded.maybe(name)) is not None]
    return common_sizes(tiles)


def vector(decoded: Decoded, name: str, sizes: Sizes | None, default: float = 0.0) -> Load:
    """A number, or one element per partition, that broadcasts to (partitions, *sizes)."""
    tile = decoded.maybe(name)
    if tile is not None:
        return tile.source((1,) * len(sizes or (1,))).load
    number = np.array(decoded.number(name, default), np.float32)
    return lambda: number


def binary(op: str, reverse: bool) -> Binary:
    """The arithmetic operator as f(a, b, out), operands swapped if `reverse`."""
    function = ARITHMETIC[op]
    return (lambda a, b, out: function(b, a, out)) if reverse else function


def is_bitvec(op: str) -> bool:
    """Works on bit patterns."""
    return ALU[op].group == "bitvec"


def unsigned(bits: Array) -> Array:
    """The same bits as unsigned integers."""
    return bits.view(f"u{bits.dtype.itemsize}")


def bit_rows(tile: Tile) -> Array:
    """The tile's bits as unsigned integers, (partitions, free), copied."""
    return unsigned(tile.bits()).reshape(tile.partitions, tile.free)


def put_rows(tile: Tile, bits: Array) -> None:
    """Stores unsigned integers as the tile's bits, cut or filled to its width."""
    tile.put_bits(bits.astype(f"u{tile.dtype.size}").view(storage(tile.dtype)))


def all_int32(decoded: Decoded) -> bool:
    """Every tile is int32 or uint32, so that integer arithmetic is exact."""
    tiles = [t for t in decoded.operands.values() if isinstance(t, Tile)]
    return all(t.dtype.name in ("int32", "uint32") for t in tiles)
