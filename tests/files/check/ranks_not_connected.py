# test: check
# args: a=float32[128,512]
# lnc: 2
"""Groups that no machine connects are simulated, and warned of; trn2."""
import nki
import nki.collectives as ncc
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    src = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.private_hbm)
    counts = nl.ndarray((3, 2), dtype=nl.uint32, buffer=nl.private_hbm)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.private_hbm)
    zeros = nl.ndarray((3, 2), dtype=nl.uint32, buffer=nl.sbuf)
    nisa.memset(zeros, 0)
    nisa.dma_copy(dst=src, src=a)
    nisa.dma_copy(dst=out, src=a)
    nisa.dma_copy(dst=counts, src=zeros)
    near, far = ncc.ReplicaGroup([[0, 4], [1, 3]]), ncc.ReplicaGroup([[0, 64], [1, 65]])
    ncc.all_to_all_v([src], [out], near, counts)  # warning[ranks-not-connected]: ranks 1 and 3 exchange data, but on trn2 all_to_all_v connects only ranks of the same index
    ncc.all_to_all_v([src], [out], far, counts)
    ncc.collective_permute([src], [out], [(0, 1), (1, 2)])  # warning[ranks-not-connected]: rank 0 sends and does not receive; only circular permutations are supported
    ncc.collective_permute([src], [out], [(0, 1), (1, 0), (2, 3), (3, 2)])
    result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    if nl.program_id(0) == 0:
        nisa.dma_copy(dst=result, src=out)
    return result
