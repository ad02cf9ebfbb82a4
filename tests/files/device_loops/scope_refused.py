# test: check
# args: a=float32[128,64]
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    made = []

    def body(i):
        tile = nl.load(a)
        nisa.reciprocal(dst=tile, data=tile)
        made.append(tile)

    nl.fori_loop(0, 4, body)
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=made[0])  # error[tensor-out-of-scope]: loop that has ended
    return out
