"""Meanings of the gpsimd engine's rows: patterns of indices, in 32-bit integers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.machine.facts import Register
from nkic.simulate.decode import Decoded, Step, semantics
from nkic.simulate.numerics.alu import INTEGERS
from nkic.simulate.numerics.vector import select
from nkic.simulate.tile import Tile

Words = NDArray[np.int32]


def _indices(decoded: Decoded, partitions: int) -> Words:
    """partition x channel_multiplier + the pattern's index, (partitions, elements), mod 2^32."""
    index = np.zeros(1, np.int64)
    for step, num in decoded.attributes["pattern"]:
        index = (index[:, None] + step * np.arange(num)).reshape(-1)
    rows = np.arange(partitions)[:, None] * decoded.attributes["channel_multiplier"]
    wrapped: Words = (rows + index).astype(np.int32)
    return wrapped


def _offset(decoded: Decoded) -> np.int32:
    value = decoded.operands["offset"]
    number = (
        decoded.state.registers[value.number]
        if isinstance(value, Register)
        else int(decoded.number("offset"))
    )
    return np.int32((number + (1 << 31)) % (1 << 32) - (1 << 31))


@semantics("iota")
def iota(decoded: Decoded) -> Step:
    dst = decoded.tile("dst")
    indices = _indices(decoded, dst.partitions)
    return lambda: _put_integers(dst, indices + _offset(decoded))


def _put_integers(dst: Tile, values: Words) -> None:
    """Integers as dst's type: exact, or rounded; out of its range, the nearest that it has."""
    if not dst.dtype.is_integer:
        sink = dst.sink()
        sink.out[...] = values
        sink.store()
        return
    wide = np.clip(values.astype(np.int64), int(dst.dtype.lowest), int(dst.dtype.highest))
    window = dst.window()
    np.copyto(window, wide.reshape(window.shape), casting="unsafe")


@semantics("affine_select")
def affine_select(decoded: Decoded) -> Step:
    dst, source = decoded.tile("dst"), decoded.tile("on_true_tile")
    indices = _indices(decoded, dst.partitions)
    compare, zero = INTEGERS[decoded.attributes["cmp_op"]], np.zeros((), np.int32)
    mask = np.empty(indices.shape, np.bool_)
    fixed = not isinstance(decoded.operands["offset"], Register)
    if fixed:
        compare(indices + _offset(decoded), zero, mask)

    def decide() -> NDArray[np.bool_]:
        if not fixed:
            compare(indices + _offset(decoded), zero, mask)
        return mask

    other = float(decoded.attributes["on_false_value"])
    if dst.dtype is source.dtype and dst.dtype.is_integer:
        return _select_integers(dst, source, decide, other)
    load, sink = source.source().load, dst.sink()
    on_false = np.array(other, np.float32)

    def step() -> None:
        select(decide(), load(), on_false, sink.out)
        sink.store()

    return step


def _select_integers(dst: Tile, source: Tile, decide: Any, other: float) -> Step:
    element = dst.element(other)
    shape = (dst.partitions, dst.free)

    def step() -> None:
        dst.put_bits(np.where(decide(), source.bits().reshape(shape), element))

    return step
