"""Meanings of the transfers. Sources: `nki.isa.dma_copy`, `nki.isa.dma_transpose`.

`priority`, `dge_mode` and `engine` say who makes the descriptors and when: they change no
value. `axes` repeats the one permutation that each rank has; the rules refuse others.
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
