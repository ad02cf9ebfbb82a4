# test: check
# args: a=float32[128,512]
# nki: 0.3
"""NKI 0.3 refuses a target in nki.jit and ignores the mode."""
import nki
import nki.isa as nisa
import nki.language as nl


# warning@+1[deprecated]: `mode=` of nki.jit is deprecated since NKI 0.3
@nki.jit(mode="trace", platform_target="trn2")  # error[removed-name]: no option `platform_target=`: it was removed in NKI 0.3
def kernel(a):
    x = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
