# test: check
# args: a=float32[128,512]
# nki: beta2
"""The dtype of a result, as kernels of NKI 0.2 still say it, is that of dst; targets agree."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit(platform_target="trn3")  # warning[jit-option]: platform_target is 'trn3', but the target is trn2
def kernel(a):
    x = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    nisa.tensor_copy(dst=x, src=x, dtype=a.dtype)
    nisa.tensor_copy(dst=x, src=x, dtype=nl.bfloat16)  # warning[deprecated]: `dtype` is bfloat16, but the result has the dtype of dst, float32
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
