"""Meanings of the transfers. Sources: `nki.isa.dma_copy`, `nki.isa.dma_transpose`."""

from __future__ import annotations

import numpy as np

from nkic.simulate.decode import Decoded, Step, semantics
from nkic.simulate.semantics.copying import copy_step

PERMUTATIONS = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}


@semantics("dma_copy")
def dma_copy(decoded: Decoded) -> Step:
    return copy_step(decoded.tile("dst"), decoded.tile("src"))


@semantics("dma_transpose")
def dma_transpose(decoded: Decoded) -> Step:
    dst, src = decoded.tile("dst"), decoded.tile("src")
    shape = (src.partitions, *src.sizes) if src.on_chip else src.sizes
    axes = PERMUTATIONS[len(shape)]

    def step() -> None:
        moved = src.bits().reshape(shape).transpose(axes)
        dst.put_bits(np.ascontiguousarray(moved))

    return step
