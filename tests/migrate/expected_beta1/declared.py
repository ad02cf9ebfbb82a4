# /// nkic
# kernel = "kernel"
# nki = "0.7"
# [args]
# a = "float32[128, 128]"
# b = "float32[128, 512]"
# [consts]
# causal = false
# ///
"""Branches that the evaluation does not reach, with tiles that are declared before them."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a: nl.NkiTensor, b: nl.NkiTensor, causal=False) -> nl.NkiTensor:
    kind = nl.bfloat16
    out = nl.ndarray((128, 512), dtype=kind, buffer=nl.shared_hbm)
    x = nl.load(a)
    y = nl.load(b)
    scores = nl.ndarray((128, 512), dtype=kind, buffer=nl.sbuf)
    product = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(product[...], x, y)

    def unused(tile):  # left: `unused` was not evaluated, and its instructions return tiles
        return nisa.activation(nl.exp, tile)

    if causal:
        nisa.affine_select(
            dst=scores[0:128, 0:512], pattern=[[-1, 512]], offset=0, channel_multiplier=1, on_true_tile=nl.copy(product[0:128, 0:512]), on_false_value=-9.0, cmp_op=nl.greater_equal)
    else:
        scores[0:128, 0:512] = nl.copy(product[0:128, 0:512], dtype=kind)
    nl.store(out, value=scores)
    return out
