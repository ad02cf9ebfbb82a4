# test: check
# args: n=int64[1,1]
# nki: 0.7
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(n):
    i = nisa.scalar_load(n)
    nl.fori_loop(0, i, print)  # error[loop-bounds]: this scalar is nl.int64
    return n
