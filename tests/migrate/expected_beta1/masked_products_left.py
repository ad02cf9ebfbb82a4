# /// nkic
# nki = "0.7"
# [args]
# a = "float32[128, 64]"
# b = "float32[128, 96]"
# ///
# A mask on the rows of a product, which its factors have in other dimensions.
import nki
import nki.language as nl


@nki.jit
def kernel(a, b):
    out = nl.ndarray((64, 96), dtype=nl.float32, buffer=nl.shared_hbm)
    j_p, j_f = nl.mgrid[0:32, 0:96]  # left: there is no
    total = nl.zeros((64, 96), dtype=nl.float32, buffer=nl.psum)
    left = nl.load(a[:, 32:64])
    total[32:64] += nl.matmul(left, nl.load(b), transpose_x=True, mask=j_p < 16)  # left: selects
    nl.store(out, nl.copy(total))
    return out
