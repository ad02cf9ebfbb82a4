"""Semantics of dma_compute. Source: `nki.isa.dma_compute`.

`scales` are ones. With a vector of indices, dst is one of the sources, and `simulate.dynamic` has
gathered it before; among equal indices the last one wins (assumed; docs/fidelity.md).
"""

from __future__ import annotations

import numpy as np

from nkic.simulate.decode import Decoded, Step, semantics


@semantics("dma_compute")
def dma_compute(decoded: Decoded) -> Step:
    """Sums are rounded to float32, in the order of the sources. dst may be one of the sources."""
    dst, *sources = decoded.tiles()
    first, *others = [source.load(source.sizes) for source in sources]
    total = decoded.scratch.floats(dst.shape)

    def step() -> None:
        np.copyto(total, first().reshape(total.shape))
        for load in others:
            np.add(total, load().reshape(total.shape), out=total)
        dst.put(total)

    return step
