# test: compile
# args: a=float32[64,64] n=int32[1,1]
"""A read that the runner is certain to refuse is an error."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, n):
    out = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.shared_hbm)
    y = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
    u = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
    # error@+1[NKI0536]: tensor_copy reads `y`, which is uninitialised
    nisa.tensor_copy(dst=u, src=y)
    half = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=half[0:64], src=a)
    # warning@+1[NKI0535]: tensor_tensor reads [64:128, 0:64] of `half`, which is uninitialised
    nisa.tensor_tensor(dst=u, data1=u, data2=half, op=nl.add)
    part = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=part[0:64], src=a)
    # error@+1[NKI0536]: reads [64:128, 0:64] of `part`, which is uninitialised
    nisa.tensor_partition_reduce(dst=u[0:1], op=nl.add, data=part)
    c = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=c, src=n)
    turns = nisa.register_alloc()
    nisa.register_load(turns, c)
    other = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)

    def body(i):
        # warning@+1[NKI0535]: tensor_copy reads `other`, which is uninitialised
        nisa.tensor_copy(dst=u, src=other)

    nl.fori_loop(0, turns, body)
    nisa.dma_copy(dst=out, src=u)
    return out
