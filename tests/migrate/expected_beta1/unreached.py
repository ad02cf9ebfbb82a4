# /// nkic
# kernel = "kernel"
# nki = "0.7"
# [args]
# a = "float32[128, 256]"
# [consts]
# way = 0
# window = 5
# ///
"""Branches that the evaluation does not reach: what they return is like what they read."""

import nki
import nki.isa as nisa
import nki.language as nl


def turned(blocks, k, source):
    columns = nl.ds(k * 128, 128)
    flipped = nl.ndarray((128, source.shape[0]), dtype=source.dtype, buffer=nl.sbuf)
    nisa.dma_transpose(flipped, source[:, nl.ds(k * 128, 128)])
    blocks_tile = nl.ndarray(blocks[k][:, :].shape, dtype=blocks[0].dtype, buffer=nl.sbuf)
    nisa.tensor_copy(blocks_tile, flipped)
    blocks[k][:, :] = blocks_tile
    return columns


@nki.jit
def kernel(a, way=0, window=5):
    kind = nl.bfloat16
    out = nl.ndarray((2, 128, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    blocks = [nl.ndarray((nl.par_dim(128), 128), dtype=kind, buffer=nl.sbuf) for i in range(2)]
    x = nl.load(a)
    for k in range(2):
        columns = nl.ds(k * 128, 128)
        blocks[k][...] = nl.copy(x[:, columns], dtype=kind)
        y = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)
        y[...] = nl.copy(x[:, columns])
        left = k == 0
        if way == 1:
            turned(blocks, k, x)
        if way == 2:
            y_tile = nl.ndarray(y[:, :].shape, dtype=y.dtype, buffer=nl.sbuf)
            if left:
                nisa.affine_select(
                    dst=y_tile, pattern=[[1, 128]], offset=window, channel_multiplier=-1, on_true_tile=y[:, :], on_false_value=-1.0, cmp_op=nl.greater)
                y[:, :] = y_tile
        if way == 3:
            nisa.activation(blocks[k][0:128, 0:128], nl.exp, x[:, columns])
        nl.store(out[k], value=nl.add(blocks[k], y))
    return out
