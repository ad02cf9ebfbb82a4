# test: check
# args: a=float32[128,512]
# nki: 0.6
"""From NKI 0.4 on, each import of the old namespace is an error of its own."""
import neuronxcc.nki as nki  # error[removed-name]: all of `neuronxcc.nki` was removed in NKI 0.4
import neuronxcc.nki.isa as nisa  # error[removed-name]: NKI 0.6 has no `neuronxcc.nki.isa`
from neuronxcc.nki.language import float32, ndarray, sbuf, shared_hbm  # error[removed-name]: `neuronxcc.nki.language


@nki.jit
def kernel(a):
    x = ndarray((128, 512), dtype=float32, buffer=sbuf)
    nisa.dma_copy(dst=x, src=a)
    out = ndarray(a.shape, dtype=a.dtype, buffer=shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
