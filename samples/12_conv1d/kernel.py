# /// nkic
# kernel = "conv1d"
# target = "trn2"
# [args]
# x = "bfloat16[192, 1300]"
# w = "bfloat16[4, 192, 256]"
# bias = "float32[256]"
# ///
"""1-D convolution with bias and ReLU, as matrix products that accumulate in PSUM.

Tap j of the filter multiplies the signal shifted by j:

    y[o, t] = relu(bias[o] + sum over j, i of w[j, i, o] * x[i, t + j])

Input channels are the contraction (partitions), the tap's weights are the stationary operand,
and the signal is the moving operand. Shifting is free: the moving operand starts j columns
later. There is no im2col copy.
"""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def conv1d(x, w, bias):
    """x[C_in, L], w[taps, C_in, C_out], bias[C_out] -> relu(conv) [C_out, L - taps + 1]."""
    C_in, L = x.shape
    taps, C_w, C_out = w.shape
    assert C_w == C_in, f"x has {C_in} input channels, w has {C_w}: they must be the same"
    assert bias.shape == (C_out,), f"bias{bias.shape} must have {C_out} elements"
    assert taps <= L, f"{taps} taps are more than the signal's {L} samples"
    length = L - taps + 1
    P = nl.tile_size.pmax
    y = nl.ndarray((C_out, length), dtype=x.dtype, buffer=nl.shared_hbm)

    # Both operands stay in SBUF: 2 * L bytes and 2 * taps * C_out bytes per partition and tile
    # of input channels.
    x_tiles, w_tiles = [], []
    for c in range(0, C_in, P):
        p = min(P, C_in - c)
        x_tile = nl.ndarray((p, L), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=x_tile, src=x[c : c + p, :])
        x_tiles.append(x_tile)
        w_tile = nl.ndarray((p, taps, C_out), dtype=w.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=w_tile, src=w[:, c : c + p, :].permute((1, 0, 2)))
        w_tiles.append(w_tile)

    for o in range(0, C_out, P):
        q = min(P, C_out - o)
        bias_tile = nl.ndarray((q, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=bias_tile, src=bias[o : o + q].reshape((q, 1)))
        # One row of results at a time, so that the store has long rows.
        y_tile = nl.ndarray((q, length), dtype=y.dtype, buffer=nl.sbuf)
        for t in range(0, length, nl.tile_size.gemm_moving_fmax):
            f = min(nl.tile_size.gemm_moving_fmax, length - t)
            psum = convolve(x_tiles, w_tiles, o, q, t, f)
            # The result must leave PSUM anyway: ScalarE adds the bias and clips in that copy.
            nisa.activation(dst=y_tile[:, t : t + f], op=nl.relu, data=psum, bias=bias_tile)
        nisa.dma_copy(dst=y[o : o + q, :], src=y_tile)
    return y


def convolve(x_tiles, w_tiles, o, q, t, f):
    """Return output channels o ... o + q at times t ... t + f without bias, a PSUM tile [q, f].

    It makes taps * input tiles products, all into the same bank.
    """
    psum = nl.ndarray((q, f), dtype=nl.float32, buffer=nl.psum)
    taps = w_tiles[0].shape[1]
    for i in range(len(x_tiles)):
        for tap in range(taps):
            nisa.nc_matmul(
                dst=psum,
                stationary=w_tiles[i][:, tap, o : o + q],
                moving=x_tiles[i][:, t + tap : t + tap + f],
                accumulate=(i > 0 or tap > 0),
            )
    return psum
