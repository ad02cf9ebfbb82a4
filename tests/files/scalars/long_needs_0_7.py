# test: check
# args: n=int32[1,1]
# nki: 0.6
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(n):
    nl.ndarray((1, 1), nl.int64, nl.sbuf)  # error[needs-profile]: was added in NKI 0.7
    return n
