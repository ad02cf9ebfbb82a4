# test: check
# args: n=int64[1,1]
# nki: 0.6
import nki


@nki.jit
def kernel(n):  # error[unknown-dtype]: argument `n` is int64, which is not a dtype of NKI 0.6
    return n
