"""Semantics of transfers. Sources: `nki.isa.dma_copy`, `nki.isa.dma_transpose`.

`priority`, `dge_mode` and `engine` tell when and by which engine descriptors are made; they do not
affect values. `axes` repeats the only permutation of each rank; the rules reject others.
"""

from __future__ import annotations

import numpy as np

from nkic.simulate.decode import Decoded, Step, semantics
from nkic.simulate.semantics.copying import as_held, copy_step

PERMUTATIONS = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}


@semantics("dma_copy")
def dma_copy(decoded: Decoded) -> Step:
    return copy_step(decoded.tile("dst"), decoded.tile("src"))


@semantics("dma_transpose")
def dma_transpose(decoded: Decoded) -> Step:
    dst, src = decoded.tile("dst"), decoded.tile("src")
    load = as_held(src, dst, src.sizes)
    shape = src.shape if src.on_chip else src.sizes
    axes = PERMUTATIONS[len(shape)]

    def step() -> None:
        np.copyto(dst.window, load().reshape(shape).transpose(axes))

    return step
