# test: check
# args: a=float32[128,512]
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf, address=(0, 212000))  # error[fixed-address]: ends at byte 214,048
    y = nl.ndarray((64, 512), dtype=nl.float32, buffer=nl.sbuf, address=(96, 0))  # error[fixed-address]: ends at partition 160
    nisa.dma_copy(dst=x, src=a)
    nisa.dma_copy(dst=y, src=a[0:64, :])
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out
