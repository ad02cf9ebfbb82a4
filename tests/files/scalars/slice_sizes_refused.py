# test: check
# args: n=int32[1,1]
"""The size of a slice that begins at a scalar is an int, and what a scalar is loaded from a tile."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(n):
    i = nisa.scalar_load(n)
    t = nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=t, value=1.0)
    t[:, nl.ds(i, "a")]  # error[bad-index]: indexed by 'a'
    t[:, nl.ds(i, 2.0)]  # error[bad-index]: indexed by 2.0
    t[:, nl.ds(i, True)]  # error[bad-index]: indexed by True
    t[:, nl.ds(i, i)]  # error[register-value]: bounds of a slice of dimension 1 must be known
    nisa.scalar_load(512)  # error[argument-kind]: `src` is 512, but must be a tile
    return n
