# test: check
# args: n=int64[1,1]
# nki: 0.7
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(n):
    t = nl.load(n)
    nisa.tensor_copy(nl.ndarray((1, 1), nl.int32, nl.sbuf), t)  # error[dtype-not-supported]: `src` is int64, 64 bits
    return n  # warning[input-returned]: which nothing writes
