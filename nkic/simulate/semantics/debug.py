"""Semantics of device prints."""

from __future__ import annotations

from nkic.simulate.decode import Decoded, Step, semantics


@semantics("device_print")
def device_print(decoded: Decoded) -> Step:
    tile, prefix = decoded.tile("tensor"), decoded.attributes["print_prefix"]
    state, sizes = decoded.state, tile.sizes
    shape = (tile.shape[0], *sizes) if tile.on_chip else sizes

    def step() -> None:
        state.prints.add(state.core, prefix, tile.dtype, tile.bits().reshape(shape))

    return step
