# test: compile
# args: a=float32[128,512]
# nki: 0.3
"""Until NKI 0.3 the old namespace is accepted with a warning."""
import neuronxcc.nki as nki  # warning[deprecated]: `neuronxcc.nki` is deprecated since NKI beta2
import neuronxcc.nki.isa as nisa  # warning[deprecated]: `neuronxcc.nki.isa` is deprecated
import neuronxcc.nki.language as nl  # warning[deprecated]: `neuronxcc.nki.language` is


@nki.jit
def kernel(a):
    x = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
