"""What the meanings of elementwise instructions share: operands of one shape, and numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.operators import ALU
from nkic.simulate.decode import Decoded
from nkic.simulate.numerics.alu import ARITHMETIC
from nkic.simulate.tile import Load, Sink, Sizes, Tile, View, refined

Array = NDArray[Any]
Floats = NDArray[np.float32]
Binary = Callable[[Floats, Floats, Floats], Any]


def shape_of(decoded: Decoded, *names: str) -> Sizes | None:
    """Free dimensions that the tiles among these operands can share without a copy."""
    found = [decoded.operands[name] for name in names]
    return refined(tuple([tile.sizes for tile in found if type(tile) is Tile]))


def result(decoded: Decoded, sizes: Sizes | None = None) -> Sink:
    """Where to write dst element by element. All operands are read before any is overwritten:
    if dst is laid over one of them in another way, it is written at the end (assumed;
    docs/fidelity.md).
    """
    dst = decoded.tile("dst")
    return dst.sink(sizes, apart=dst.straddles(decoded.tiles()))


def vector(decoded: Decoded, name: str, sizes: Sizes | None, default: float = 0.0) -> Load:
    """A number, or one element per partition, that broadcasts to (partitions, *sizes)."""
    tile = decoded.maybe(name)
    if tile is not None:
        return tile.load((1,) * len(sizes or (1,)))
    number = np.array(decoded.number(name, default), np.float32)
    return lambda: number


def binary(op: str, reverse: bool) -> Binary:
    """The arithmetic operator as f(a, b, out), operands swapped if `reverse`."""
    function = ARITHMETIC[op]
    return (lambda a, b, out: function(b, a, out)) if swaps(op, reverse) else function


def swaps(op: str, reverse: bool) -> bool:
    """Whether `reverse` means something: an operator with one input works on the data."""
    return reverse and ALU[op].arity == 2


def is_bitvec(op: str) -> bool:
    """Works on bit patterns."""
    return ALU[op].group == "bitvec"


def words(tile: Tile, sizes: Sizes) -> View:
    """A raw tile's memory as unsigned integers, (partitions, *sizes)."""
    kind, seen = np.dtype(f"u{tile.dtype.size}"), tile.seen_as(sizes)
    return lambda: seen().view(kind)


def all_int32(decoded: Decoded) -> bool:
    """Every tile is int32 or uint32, so that integer arithmetic is exact."""
    return all(tile.dtype.name in ("int32", "uint32") for tile in decoded.tiles())
