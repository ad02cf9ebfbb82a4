# /// nkic
# kernel = "kernel"
# nki = "beta1"
# [args]
# a = "float32[128, 128]"
# b = "float32[128, 512]"
# [consts]
# causal = false
# ///
"""Branches that the evaluation does not reach, with tiles that are declared before them."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a: nki.tensor, b: nki.tensor, causal=False) -> nki.tensor:
    kind = nl.bfloat16
    out = nl.ndarray((128, 512), dtype=kind, buffer=nl.shared_hbm)
    i_p, i_f = nl.mgrid[0:128, 0:512]
    x = nl.load(a)
    y = nl.load(b)
    scores = nl.ndarray((128, 512), dtype=kind, buffer=nl.sbuf)
    product = nl.zeros((128, 512), dtype=nl.float32, buffer=nl.psum)
    product[...] += nisa.nc_matmul(x, y)

    def unused(tile):  # left: `unused` was not evaluated, and its instructions return tiles
        return nisa.activation(nl.exp, tile)

    if causal:
        scores[i_p, i_f] = nisa.affine_select(
            pred=(i_p >= i_f), on_true_tile=product[i_p, i_f], on_false_value=-9.0, dtype=kind
        )
    else:
        scores[i_p, i_f] = nl.copy(product[i_p, i_f], dtype=kind)
    nl.store(out, value=scores)
    return out
