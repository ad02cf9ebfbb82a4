# test: check
# args: a=float32[128,512]
# nki: 0.6
"""The halves came with NKI 0.7."""
import nki
import nki.collectives as ncc
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    src = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.private_hbm)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    counts = nl.ndarray((3, 4), dtype=nl.uint32, buffer=nl.private_hbm)
    nisa.dma_copy(dst=counts, src=nl.zeros((3, 4), dtype=nl.uint32, buffer=nl.sbuf))
    nisa.dma_copy(dst=src, src=a)
    nisa.dma_copy(dst=out, src=a)
    groups = ncc.ReplicaGroup([[0, 64, 128, 192]])
    given = ([src], [out], groups, counts)
    ready = ncc.all_to_all_v_prepare(*given)  # error[needs-profile]: NKI 0.6 has no `nki.collectives.all_to_all_v_prepare`: it was added in NKI 0.7
    return out
