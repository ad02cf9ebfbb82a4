# /// nkic
# kernel = "kernel"
# nki = "beta1"
# [args]
# a = "float32[128, 256]"
# [consts]
# way = 0
# window = 5
# ///
"""Branches that the evaluation does not reach: what they return is like what they read."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


def turned(blocks, k, source):
    columns = nl.ds(k * 128, 128)
    flipped = nisa.dma_transpose(source[:, nl.ds(k * 128, 128)])
    blocks[k, :, :] = nisa.tensor_copy(flipped, dtype=blocks.dtype)
    return columns


@nki.jit
def kernel(a, way=0, window=5):
    kind = nl.bfloat16
    out = nl.ndarray((2, 128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    blocks = nl.ndarray((2, nl.par_dim(128), 128), dtype=kind, buffer=nl.sbuf)
    i_p, i_f = nl.mgrid[0:128, 0:128]
    x = nl.load(a)
    for k in nl.static_range(2):
        columns = nl.ds(k * 128, 128)
        blocks[k] = nl.copy(x[:, columns], dtype=kind)
        y = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
        y[...] = nl.copy(x[:, columns])
        left = k == 0
        if way == 1:
            turned(blocks, k, x)
        if way == 2:
            y[:, :] = nisa.affine_select(
                pred=i_f > i_p - window, on_true_tile=y[:, :], on_false_value=-1.0, mask=left
            )
        if way == 3:
            blocks[k, i_p, i_f] = nisa.activation(nl.exp, x[:, columns], dtype=kind)
        nl.store(out[k], value=nl.add(blocks[k], y))
    return out
