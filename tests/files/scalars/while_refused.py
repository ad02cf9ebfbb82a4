# test: check
# args: n=int32[1,1]
# nki: 0.7
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(n):
    nl.while_loop(nisa.scalar_load(nl.load(n)), lambda r: r)  # error[loop-result]: be a register, not
    return n
