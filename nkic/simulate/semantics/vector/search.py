"""Semantics of the vector engine's rows that search for values or move partitions.

Values are compared in float32 (assumed; docs/fidelity.md).
"""

from __future__ import annotations

import numpy as np

from nkic.simulate.decode import Decoded, Step, semantics
from nkic.simulate.numerics.search import Indices, match8
from nkic.simulate.semantics.binding import result
from nkic.simulate.semantics.copying import as_held
from nkic.simulate.tile import Tile

UPWARDS, DOWNWARDS = range(8), range(7, -1, -1)
KEEP = 255
QUADRANT = 32


@semantics("nc_find_index8")
def nc_find_index8(decoded: Decoded) -> Step:
    tile, dst = decoded.tile("data"), decoded.tile("dst")
    data, values = tile.load(), decoded.tile("vals").load()
    taken = decoded.scratch.array((tile.partitions, tile.free), np.bool_)
    return lambda: _put(dst, match8(data(), values(), UPWARDS, taken))


@semantics("nc_match_replace8")
def nc_match_replace8(decoded: Decoded) -> Step:
    tile, indices = decoded.tile("data"), decoded.maybe("dst_idx")
    data, values = tile.load(), decoded.tile("vals").load()
    out, store, _ = result(decoded)
    taken = decoded.scratch.array((tile.partitions, tile.free), np.bool_)
    replacement = np.float32(decoded.attributes["imm"])

    def step() -> None:
        positions = match8(data(), values(), DOWNWARDS, taken)
        into = out()
        np.copyto(into, data())
        np.copyto(into, replacement, where=taken)
        store()
        if indices is not None:
            _put(indices, positions)

    return step


def _put(dst: Tile, positions: Indices) -> None:
    """Store indices in an unsigned type; -1 has all bits set."""
    np.copyto(dst.window, positions.reshape(dst.shape), casting="unsafe")


@semantics("nc_stream_shuffle")
def nc_stream_shuffle(decoded: Decoded) -> Step:
    """Bits are moved. dst may be src: all is read before anything is written."""
    dst, src, mask = decoded.tile("dst"), decoded.tile("src"), decoded.attributes["shuffle_mask"]
    into = [p for p in range(dst.partitions) if mask[p % QUADRANT] != KEEP]
    taken = [p - p % QUADRANT + mask[p % QUADRANT] for p in into]
    load = as_held(src, dst, dst.sizes)

    def step() -> None:
        dst.window[into] = load()[taken]

    return step
