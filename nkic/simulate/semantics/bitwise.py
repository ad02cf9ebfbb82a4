"""Operators on the bits of integers, and exact arithmetic of 32-bit integers.

Operands are read as unsigned integers as wide as the data (bitvec), or with the sign of their own
type (exact). Sources: `nki.isa.tensor_tensor`, `nki.isa.tensor_scalar` (data types).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nkic.simulate.decode import Decoded, Step
from nkic.simulate.numerics.alu import BITVEC, INTEGERS
from nkic.simulate.numerics.reduction import reduce_bits
from nkic.simulate.semantics.binding import shape_of, swaps, words
from nkic.simulate.tile import Sizes, Tile

Array = NDArray[Any]


class Stage(NamedTuple):
    """One operator of an instruction, with the name of its second operand."""

    op: str
    operand: str
    reverse: bool


def bitvec_step(decoded: Decoded, data: str, stages: list[Stage]) -> Step:
    """Return the step dst = data after each stage, truncated or zero-extended to dst (assumed)."""
    tile, dst = decoded.tile(data), decoded.tile("dst")
    kind = np.dtype(f"u{tile.dtype.size}")
    sizes = shape_of(decoded, "dst", data, *_full(decoded, tile, stages)) or dst.sizes
    load = _unsigned(tile, sizes, kind)
    into = words(dst, sizes)
    functions = [(BITVEC[s.op], _bits(decoded, s.operand, sizes, kind), s) for s in stages]
    bits = decoded.scratch.array((dst.partitions, *sizes), kind)

    def step() -> None:
        values = load()
        for function, operand, stage in functions:
            _apply(function, values, operand(), bits, swaps(stage.op, stage.reverse))
            values = bits
        np.copyto(into(), values, casting="unsafe")

    return step


def integer_step(decoded: Decoded, data: str, stages: list[Stage]) -> Step:
    """Return the step dst = data after each stage, in integers that wrap around at 32 bits.

    They are signed if dst is. int64 holds all operands, and all results except for products of
    large unsigned numbers, whose low 32 bits are correct.
    """
    tile, dst = decoded.tile(data), decoded.tile("dst")
    sizes = shape_of(decoded, "dst", data, *_full(decoded, tile, stages)) or dst.sizes
    load, into = tile.seen_as(sizes), dst.seen_as(sizes)
    functions = [(INTEGERS[s.op], _signed(decoded, s.operand, sizes), s) for s in stages]
    shape = (dst.partitions, *sizes)
    wide = decoded.scratch.array(shape, np.int64)
    wrapped = decoded.scratch.array(shape, dst.form.storage)

    def step() -> None:
        values: Array = load().astype(np.int64)
        for function, operand, stage in functions:
            _apply(function, values, operand(), wide, stage.reverse)
            np.copyto(wrapped, wide, casting="unsafe")
            np.copyto(values, wrapped)
        np.copyto(into(), wrapped)

    return step


def reduce_bits_step(op: str, data: Tile, dst: Tile, keep: int) -> Step:
    """Return a step that reduces all dimensions but the first `keep` by a bitvec operator."""
    bits, into = words(data, data.sizes), words(dst, dst.sizes)
    total = np.empty(data.shape[:keep], np.dtype(f"u{data.dtype.size}"))

    def step() -> None:
        reduce_bits(op, bits(), total, keep)
        np.copyto(into(), total.reshape(dst.shape), casting="unsafe")

    return step


def _apply(
    function: Callable[[Array, Array, Array], Any], a: Array, b: Array, out: Array, swapped: bool
) -> None:
    if swapped:
        function(b, a, out)
    else:
        function(a, b, out)


def _full(decoded: Decoded, data: Tile, stages: list[Stage]) -> list[str]:
    """Return the operands that are not vectors, but as large as the data."""
    names = [stage.operand for stage in stages]
    return [n for n in names if (t := decoded.maybe(n)) is not None and t.free == data.free]


def _unsigned(tile: Tile, sizes: Sizes, kind: np.dtype[Any]) -> Callable[[], Array]:
    """Return a function that loads the tile's bits in words of another width."""
    load = tile.seen_as(sizes if tile.free > 1 else (1,) * len(sizes))
    unsigned = np.dtype(f"u{tile.dtype.size}")
    return lambda: load().view(unsigned).astype(kind, copy=False)


def _bits(decoded: Decoded, name: str, sizes: Sizes, kind: np.dtype[Any]) -> Callable[[], Array]:
    """Return a function that loads an operand, a tile or a number, as unsigned words."""
    tile = decoded.maybe(name)
    if tile is not None:
        return _unsigned(tile, sizes, kind)
    mask = (1 << 8 * kind.itemsize) - 1
    number = np.array(int(decoded.number(name)) & mask, kind)
    return lambda: number


def _signed(decoded: Decoded, name: str, sizes: Sizes) -> Callable[[], Array]:
    """Return a function that loads an operand as integers."""
    tile = decoded.maybe(name)
    if tile is not None:
        load = tile.seen_as(sizes if tile.free > 1 else (1,) * len(sizes))
        return lambda: load().astype(np.int64)
    number = np.array(_wrapped(int(decoded.number(name))), np.int64)
    return lambda: number


def _wrapped(number: int) -> int:
    """Return the integer that 32 bits hold; those from 2^31 on are taken to be unsigned."""
    return number if -(1 << 31) <= number < 1 << 32 else number & 0xFFFFFFFF
