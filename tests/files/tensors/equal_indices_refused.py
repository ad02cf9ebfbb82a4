# test: check
# args: a=float32[64,32] i=int32[64,1]
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, i):
    out = nl.ndarray((64, 32), dtype=nl.float32, buffer=nl.shared_hbm)
    data, rows = nl.load(a), nl.load(i)
    some = out.ap([[32, 64], [1, 32]], vector_offset=rows, indirect_dim=0)
    nisa.dma_copy(dst=out, src=a)
    nisa.dma_compute(
        some,
        [some, data],
        nl.add,
        unique_indices=False,  # error[dma-mode]: needs unique_indices=True with a `vector_offset`
    )
    return out
