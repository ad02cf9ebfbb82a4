# /// nkic
# kernel = "layer_norm"
# target = "trn2"
# [args]
# x = "float32[200, 1100]"
# gamma = "float32[1100]"
# beta = "float32[1100]"
# [consts]
# eps = 1e-5
# ///
"""Layer normalisation of rows, with VectorE's statistics instructions.

bn_stats reduces up to 512 elements per partition to six numbers, and bn_aggr merges any
number of those into mean and variance: one pass over the data, and no cancellation in a
difference of large squares.
"""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def layer_norm(x, gamma, beta, eps=1e-5):
    """(x - mean) / sqrt(var + eps) * gamma + beta over the rows of x[M, N].

    gamma, beta: [N].
    """
    M, N = x.shape
    assert N >= 2, f"N = {N}: statistics need at least 2 columns"
    assert gamma.shape == (N,), f"gamma{gamma.shape} must have one element per column, ({N},)"
    assert beta.shape == (N,), f"beta{beta.shape} must have one element per column, ({N},)"
    P = nl.tile_size.pmax
    y = nl.ndarray((M, N), dtype=x.dtype, buffer=nl.shared_hbm)
    gamma_rows = load_everywhere(gamma, min(P, M))
    beta_rows = load_everywhere(beta, min(P, M))

    for m in range(0, M, P):
        p = min(P, M - m)
        x_tile = nl.ndarray((p, N), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=x_tile, src=x[m : m + p, :])
        mean, rstd = row_statistics(x_tile, eps)

        # scalar_tensor_tensor takes a number per partition and a whole tile: two instructions
        # in place of three for subtract, multiply, multiply and add.
        centred = nl.ndarray((p, N), dtype=nl.float32, buffer=nl.sbuf)
        nisa.scalar_tensor_tensor(
            dst=centred,
            data=x_tile,
            op0=nl.subtract,
            operand0=mean,
            op1=nl.multiply,
            operand1=gamma_rows[0:p, :],
        )
        y_tile = nl.ndarray((p, N), dtype=y.dtype, buffer=nl.sbuf)
        nisa.scalar_tensor_tensor(
            dst=y_tile,
            data=centred,
            op0=nl.multiply,
            operand0=rstd,
            op1=nl.add,
            operand1=beta_rows[0:p, :],
        )
        nisa.dma_copy(dst=y[m : m + p, :], src=y_tile)
    return y


def load_everywhere(vector, partitions):
    """Load vector[N] on every partition: an HBM view may have a step of 0, a partition may not."""
    N = vector.shape[0]
    tile = nl.ndarray((partitions, N), dtype=vector.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=vector.reshape((1, N)).broadcast(0, partitions))
    return tile


def row_statistics(x_tile, eps):
    """Return mean and 1 / sqrt(var + eps) of each row, both [p, 1]."""
    p, N = x_tile.shape
    # As few chunks as possible, of nearly equal size. Each has its counts of even and odd
    # elements, so sizes may differ; but no size may be 1, which has no odd elements.
    chunks = (N + nl.tile_size.bn_stats_fmax - 1) // nl.tile_size.bn_stats_fmax
    size = (N + chunks - 1) // chunks
    stats = nl.ndarray((p, chunks, 6), dtype=nl.float32, buffer=nl.sbuf)
    for i in range(chunks):
        end = min(N, (i + 1) * size)
        nisa.bn_stats(dst=stats[:, i, :], data=x_tile[:, i * size : end])
    mean_var = nl.ndarray((p, 2), dtype=nl.float32, buffer=nl.sbuf)
    nisa.bn_aggr(dst=mean_var, data=stats)

    rstd = nl.ndarray((p, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation(dst=rstd, op=nl.rsqrt, data=mean_var[:, 1:2], bias=eps)
    return mean_var[:, 0:1], rstd
