# test: check
# args: data=int32[1,63]
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(data):
    t = nl.ndarray((128, 63), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t[0:1, :], src=data)
    n = nl.ndarray((128, 64), dtype=nl.int32, buffer=nl.sbuf)
    nisa.nonzero_with_count(dst=n, src=t)
    out = nl.ndarray((1, 64), dtype=nl.int32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=n[0:1, :])
    return out
