# /// nkic
# nki = "0.7"
# [args]
# a = "float32[128, 64]"
# b = "float32[128, 256]"
# ///
# Products of which the source does not show how to add them by themselves.
import nki
import nki.language as nl
import nki.isa as nisa


@nki.jit
def kernel(a, b):
    out = nl.ndarray((2, 64, 256), dtype=nl.float32, buffer=nl.shared_hbm)
    x, y = nl.load(a), nl.load(b)
    total = nl.ndarray((64, 256), dtype=nl.float32, buffer=nl.psum)
    product = nl.matmul(nl.load(a), y, transpose_x=True)
    total += product  # left: a matmul added `product` to this
    nl.store(out[0], nl.copy(product))
    product = nl.matmul(x, y, transpose_x=True)
    scale = 2
    total[...] += product  # left: a matmul added `product` to this
    nisa.nc_matmul(total, x, y)
    nl.store(out[1], nl.multiply(total, scale))
    return out
