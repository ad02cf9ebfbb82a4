"""The two examples of the DMA overview, to whose pictures figures of the clock were fitted."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def exponential(a, by_software):
    """Load, exponential, store."""
    mode = nisa.dge_mode.swdge if by_software else nisa.dge_mode.unknown
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    x = nl.ndarray(a.shape, a.dtype, buffer=nl.sbuf)
    y = nl.ndarray(a.shape, a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a, dge_mode=mode)
    nisa.activation(dst=y, op=nl.exp, data=x)
    nisa.dma_copy(dst=out, src=y, dge_mode=mode)
    return out
