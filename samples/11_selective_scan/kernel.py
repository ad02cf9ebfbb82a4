# /// nkic
# kernel = "selective_scan"
# target = "trn2"
# [args]
# delta = "float32[2, 160, 700]"
# u = "float32[2, 160, 700]"
# A = "float32[160, 8]"
# B = "float32[2, 8, 700]"
# C = "float32[2, 8, 700]"
# ///
"""The selective scan of Mamba: a recurrence in time, done by one instruction per state.

For every channel and state:  h[t] = exp(delta[t] * A) * h[t - 1] + delta[t] * u[t] * B[t]
and over the states:          y[t] = sum of h[t] * C[t]

Channels are independent (partitions); time is a chain (free dimension). tensor_tensor_scan runs
the chain inside VectorE: computing it step by step would take one instruction per time step,
with one element per lane in each.
"""

import nki
import nki.isa as nisa
import nki.language as nl

# Time steps per tile. A tile's last h is carried to the next tile, so any length works. 512
# float32 are rows of 2 KiB; B and C on all partitions take 2 * states * 2 KiB.
TILE_T = 512


@nki.jit
def selective_scan(delta, u, A, B, C):
    """Return y[batch, channels, time], with h = 0 before the first step.

    delta, u: [batch, channels, time]; A: [channels, states]; B, C: [batch, states, time].
    """
    batch, channels, time = delta.shape
    states = A.shape[1]
    assert u.shape == delta.shape, f"u{u.shape} must have delta's shape, {delta.shape}"
    assert A.shape[0] == channels, f"A{A.shape} must have a row for each of {channels} channels"
    assert B.shape == (batch, states, time), f"B{B.shape} must be {(batch, states, time)}"
    assert C.shape == (batch, states, time), f"C{C.shape} must be {(batch, states, time)}"
    P = nl.tile_size.pmax
    y = nl.ndarray(delta.shape, dtype=delta.dtype, buffer=nl.shared_hbm)
    A_tiles = load_channels(A)

    for b in range(batch):
        # One h per channel and state, between one time tile and the next.
        carry = nl.ndarray((P, len(A_tiles), states), dtype=nl.float32, buffer=nl.sbuf)
        for t in range(0, time, TILE_T):
            end = min(time, t + TILE_T)
            # B and C depend only on state and time: every channel tile uses the same ones.
            B_tile = load_everywhere(B[b, :, t:end])
            C_tile = load_everywhere(C[b, :, t:end])
            for i in range(len(A_tiles)):
                rows = A_tiles[i].shape[0]
                first = i * P
                y_tile = scan_tile(
                    load(delta[b, first : first + rows, t:end]),
                    load(u[b, first : first + rows, t:end]),
                    A_tiles[i],
                    B_tile[0:rows, :, :],
                    C_tile[0:rows, :, :],
                    carry[0:rows, i, :],
                    t == 0,
                    end == time,
                )
                nisa.dma_copy(dst=y[b, first : first + rows, t:end], src=y_tile)
    return y


def scan_tile(delta, u, A, B, C, carry, first, last):
    """Return y[rows, time] of one channel tile and time tile; update carry[rows, states]."""
    states = A.shape[1]
    delta_u = tile_like(delta)
    nisa.tensor_tensor(dst=delta_u, data1=delta, data2=u, op=nl.multiply)

    y = tile_like(delta)
    for s in range(states):
        decay = tile_like(delta)  # exp(delta * A): the scale is one number per partition
        nisa.activation(dst=decay, op=nl.exp, data=delta, scale=A[:, s : s + 1])
        drive = tile_like(delta)
        nisa.tensor_tensor(dst=drive, data1=delta_u, data2=B[:, s, :], op=nl.multiply)

        h = tile_like(delta)
        nisa.tensor_tensor_scan(
            dst=h,
            data0=decay,
            data1=drive,
            initial=0.0 if first else carry[:, s : s + 1],
            op0=nl.multiply,
            op1=nl.add,
        )
        if not last:
            end = h.shape[1]
            nisa.tensor_copy(dst=carry[:, s : s + 1], src=h[:, end - 1 : end])

        # y = sum over states of h * C. The first state needs no zeros to add to.
        if s == 0:
            nisa.tensor_tensor(dst=y, data1=h, data2=C[:, s, :], op=nl.multiply)
        else:
            nisa.tensor_tensor(dst=h, data1=h, data2=C[:, s, :], op=nl.multiply)
            nisa.tensor_tensor(dst=y, data1=y, data2=h, op=nl.add)
    return y


def tile_like(tile):
    """Return a float32 SBUF tile of tile's shape: the recurrence is always in float32."""
    return nl.ndarray(tile.shape, dtype=nl.float32, buffer=nl.sbuf)


def load(block):
    """Load an HBM block of at most 128 rows into SBUF."""
    tile = nl.ndarray(block.shape, dtype=block.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=block)
    return tile


def load_channels(A):
    """Load A[channels, states] as a list of tiles of 128 channels, the last ragged."""
    tiles = []
    for c in range(0, A.shape[0], nl.tile_size.pmax):
        tiles.append(load(A[c : min(A.shape[0], c + nl.tile_size.pmax), :]))
    return tiles


def load_everywhere(rows):
    """Load HBM rows[states, time] on every partition, [128, states, time]: the DMA repeats them."""
    return load(rows.expand_dim(0).broadcast(0, nl.tile_size.pmax))
