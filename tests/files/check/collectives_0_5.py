# test: check
# args: a=float32[128,512]
# nki: 0.5
"""all_gather_v came with NKI 0.6; all_to_all_v is there since 0.3."""
import nki
import nki.collectives as ncc
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    groups = ncc.ReplicaGroup([[0, 1, 2, 3]])
    src = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=src, src=a)
    counts = nl.ndarray((3, 4), dtype=nl.uint32, buffer=nl.shared_hbm)
    zeros = nl.ndarray((3, 4), dtype=nl.uint32, buffer=nl.sbuf)
    nisa.memset(zeros, 0)
    nisa.dma_copy(dst=counts, src=zeros)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=a)
    ncc.all_to_all_v([src], [out], groups, counts)
    ncc.all_gather_v([src], [out], groups, counts)  # error[needs-profile]: NKI 0.5 has no `nki.collectives.all_gather_v`: it was added in NKI 0.6
    return out
