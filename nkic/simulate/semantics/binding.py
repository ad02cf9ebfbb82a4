"""Helpers of elementwise instructions: operands of a common shape, and numbers."""

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
    """Return free dimensions that the tiles among these operands can share without a copy."""
    operands = [decoded.operands[name] for name in names]
    return refined(tuple([tile.sizes for tile in operands if type(tile) is Tile]))


def result(decoded: Decoded, sizes: Sizes | None = None) -> Sink:
    """Return a sink for writing dst element by element.

    All operands are read before any is overwritten: if dst partially overlaps one of them, it is
    written at the end (assumed; docs/fidelity.md).
    """
    dst = decoded.tile("dst")
    return dst.sink(sizes, buffered=dst.straddles(decoded.tiles()))


def vector(decoded: Decoded, name: str, sizes: Sizes | None, default: float = 0.0) -> Load:
    """Return a function that loads a number, or one element per partition, for broadcasting.

    The result broadcasts to (partitions, *sizes).
    """
    tile = decoded.maybe(name)
    if tile is not None:
        return tile.load((1,) * len(sizes or (1,)))
    number = np.array(decoded.number(name, default), np.float32)
    return lambda: number


def binary(op: str, reverse: bool) -> Binary:
    """Return the arithmetic operator as f(a, b, out), with operands swapped if `reverse`."""
    function = ARITHMETIC[op]
    return (lambda a, b, out: function(b, a, out)) if swaps(op, reverse) else function


def swaps(op: str, reverse: bool) -> bool:
    """Return whether `reverse` has an effect: unary operators always apply to the data."""
    return reverse and ALU[op].arity == 2


def is_bitvec(op: str) -> bool:
    """Return whether the operator works on bit patterns."""
    return ALU[op].group == "bitvec"


def words(tile: Tile, sizes: Sizes) -> View:
    """Return a function that views a raw tile as unsigned integers, (partitions, *sizes)."""
    kind, view = np.dtype(f"u{tile.dtype.size}"), tile.seen_as(sizes)
    return lambda: view().view(kind)


def all_int32(decoded: Decoded) -> bool:
    """Return whether every tile is int32 or uint32, so that integer arithmetic is exact."""
    return all(tile.dtype.name in ("int32", "uint32") for tile in decoded.tiles())
