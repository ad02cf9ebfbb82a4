# test: check
# args: a=float32[128,512]
# target: trn3
# lnc: 2
"""Instances behind a switch do not split collectives, which is a warning as for other groups."""
import nki
import nki.collectives as ncc
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    src = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.private_hbm)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.private_hbm)
    counts = nl.ndarray((3, 4), dtype=nl.uint32, buffer=nl.private_hbm)
    nisa.dma_copy(dst=counts, src=nl.zeros((3, 4), dtype=nl.uint32, buffer=nl.sbuf))
    nisa.dma_copy(dst=src, src=a)
    nisa.dma_copy(dst=out, src=a)
    groups = ncc.ReplicaGroup([[0, 1, 2, 3]])
    given = ([src], [out], groups, counts)
    ready = ncc.all_to_all_v_prepare(*given)  # warning[ranks-not-connected]: instances of trn3 behind a switch do not support collectives in two halves
    ncc.all_to_all_v_trigger(ready)
    result = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    if nl.program_id(0) == 0:
        nisa.dma_copy(dst=result, src=out)
    return result
