# /// nkic
# kernel = "causal_attention"
# target = "trn2"
# [args]
# q = "bfloat16[2, 128, 1024]"
# k = "bfloat16[2, 128, 1024]"
# v = "bfloat16[2, 1024, 128]"
# ///
"""Causal attention, forward, without storing the matrix of scores.

Each tile of 128 queries processes the keys in chunks of up to 512. After each chunk it has
the largest score so far, the sum of exp(score - largest) and the same sum weighted with
the values; if a chunk has a larger score, the two sums are rescaled to it.

Layouts. TensorE contracts over partitions, so both products need their contraction there:
q and k are passed as [head, d, seq] (scores contract over d), v as [head, seq, d] (the output
contracts over keys). The weights between the products have queries on partitions, since a
row's maximum and sum run along the free dimension; they are transposed for the second product.
"""

import nki
import nki.isa as nisa
import nki.language as nl

# Keys per step: the most that one nc_matmul takes and one PSUM bank holds.
CHUNK = 512
# Represents minus infinity: its exp() is 0, and it stays finite when scaled.
MASKED = -3.0e38


@nki.jit
def causal_attention(q, k, v):
    """softmax(mask(q.T @ k) / sqrt(d)) @ v for every head; query i sees keys 0 ... i.

    q, k: [H, d, S]; v and the result: [H, S, d]. d = 128, S a multiple of 512.
    """
    H, d, S = q.shape
    P = nl.tile_size.pmax
    assert k.shape == (H, d, S), f"k{k.shape} must be laid out like q, {(H, d, S)}"
    assert v.shape == (H, S, d), f"v{v.shape} must be [H, S, d], {(H, S, d)}"
    assert d == P, f"d = {d} must be {P}, the number of partitions"
    assert S % CHUNK == 0, f"S = {S} must be a multiple of {CHUNK}"
    out = nl.ndarray((H, S, d), dtype=q.dtype, buffer=nl.shared_hbm)
    identity = make_identity(P, v.dtype)

    for h in range(H):
        q_tile, k_tile, v_tile = load_head(q[h], k[h], v[h])
        for row in range(0, S, P):
            attend(
                out[h, row : row + P, :],
                q_tile[:, row : row + P],
                k_tile[:, 0 : row + P],  # later keys are masked, so they are left out
                v_tile,
                identity,
            )
    return out


def load_head(q, k, v):
    """Load one head into SBUF: 3 * 2 * S bytes per partition. Every query tile uses its keys.

    It loads chunks, so that the first queries can start after the first chunk; rows of q and k
    are 1 KiB. Rows of v are short (256 bytes) because v must have keys on partitions, but v is
    read only once.
    """
    d, S = q.shape
    P = nl.tile_size.pmax
    q_tile = nl.ndarray((d, S), dtype=q.dtype, buffer=nl.sbuf)
    k_tile = nl.ndarray((d, S), dtype=k.dtype, buffer=nl.sbuf)
    v_tile = nl.ndarray((P, S // P, d), dtype=v.dtype, buffer=nl.sbuf)  # key t * 128 + p: [p, t]
    for c in range(0, S, CHUNK):
        nisa.dma_copy(dst=q_tile[:, c : c + CHUNK], src=q[:, c : c + CHUNK])
        nisa.dma_copy(dst=k_tile[:, c : c + CHUNK], src=k[:, c : c + CHUNK])
        nisa.dma_copy(
            dst=v_tile[:, c // P : (c + CHUNK) // P, :],
            src=v[c : c + CHUNK, :].reshape_dim(0, (CHUNK // P, P)).permute((1, 0, 2)),
        )
    return q_tile, k_tile, v_tile


def attend(out, q_tile, k_tile, v_tile, identity):
    """Compute out[128, d] (HBM) for the last 128 of the K queries, with keys k_tile[d, K]."""
    P = nl.tile_size.pmax
    d, K = k_tile.shape
    scale = 1.0 / d**0.5
    acc = nl.ndarray((P, d), dtype=nl.float32, buffer=nl.sbuf)  # weights @ values so far
    total = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)  # sum of weights so far
    neg_max = None  # minus the scaled maximum so far: the bias of exp

    for start in range(0, K, CHUNK):
        width = min(CHUNK, K - start)
        scores = score(q_tile, k_tile[:, start : start + width], start + width == K)

        chunk_max = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=chunk_max, op=nl.maximum, data=scores, axis=1, negate=True)
        new_max = running_max(chunk_max, neg_max, scale)

        weights = nl.ndarray((P, width), dtype=v_tile.dtype, buffer=nl.sbuf)
        chunk_total = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(
            dst=weights,
            op=nl.exp,
            data=scores,
            scale=scale,
            bias=new_max,
            reduce_op=nl.add,
            reduce_res=chunk_total,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )
        product = weigh(weights, v_tile, start // P, identity)

        if start == 0:  # nothing to scale yet
            nisa.tensor_copy(dst=acc, src=product)
            nisa.tensor_copy(dst=total, src=chunk_total)
        else:
            shrink = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.activation(dst=shrink, op=nl.exp, data=neg_max, scale=-1.0, bias=new_max)
            rescale_and_add(acc, shrink, product)
            rescale_and_add(total, shrink, chunk_total)
        neg_max = new_max

    inverse = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.reciprocal(dst=inverse, data=total)
    out_tile = nl.ndarray((P, d), dtype=out.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=out_tile, data=acc, op0=nl.multiply, operand0=inverse)
    nisa.dma_copy(dst=out, src=out_tile)


def score(q_tile, k_tile, masked):
    """Return q_tile.T @ k_tile [128, width], unscaled. masked: the last 128 keys are the queries'.

    Scores that need no mask stay in PSUM, which ScalarE and VectorE read directly. GpSimdE, which
    applies the mask, cannot read PSUM.
    """
    P = nl.tile_size.pmax
    width = k_tile.shape[1]
    psum = nl.ndarray((P, width), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=psum, stationary=q_tile, moving=k_tile, accumulate=False)
    if not masked:
        return psum

    scores = nl.ndarray((P, width), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=scores, src=psum)
    own = scores[:, width - P : width]
    # Keep key x for query p where p - x >= 0. Keys before these 128 are all in the past.
    nisa.affine_select(
        dst=own,
        pattern=[[-1, P]],
        channel_multiplier=1,
        on_true_tile=own,
        on_false_value=MASKED,
        cmp_op=nl.greater_equal,
    )
    return scores


def running_max(chunk_max, neg_max, scale):
    """Return minus the scaled maximum with this chunk: min(chunk_max * scale, neg_max).

    It is a new tile: the old value is still needed to compute how far the maximum rose.
    """
    new_max = nl.ndarray(chunk_max.shape, dtype=nl.float32, buffer=nl.sbuf)
    if neg_max is None:
        nisa.tensor_scalar(dst=new_max, data=chunk_max, op0=nl.multiply, operand0=scale)
    else:
        nisa.tensor_scalar(
            dst=new_max,
            data=chunk_max,
            op0=nl.multiply,
            operand0=scale,
            op1=nl.minimum,
            operand1=neg_max,
        )
    return new_max


def weigh(weights, v_tile, first, identity):
    """Return weights[128, width] @ values[width, d] in PSUM; values start at v_tile[:, first].

    The weights are transposed 128 keys at a time by a product with the identity: exact, in
    float32, and at the speed of any bfloat16 product. The transposes fill one bank, and one
    copy reads it.
    """
    P = nl.tile_size.pmax
    width = weights.shape[1]
    bank = nl.ndarray((P, width), dtype=nl.float32, buffer=nl.psum)
    for key in range(0, width, P):
        nisa.nc_matmul(
            dst=bank[:, key : key + P],
            stationary=weights[:, key : key + P],
            moving=identity,
            accumulate=False,
        )
    transposed = nl.ndarray((P, width), dtype=weights.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=transposed, src=bank)

    product = nl.ndarray((P, v_tile.shape[2]), dtype=nl.float32, buffer=nl.psum)
    for key in range(0, width, P):
        nisa.nc_matmul(
            dst=product,
            stationary=transposed[:, key : key + P],
            moving=v_tile[:, first + key // P, :],
            accumulate=(key > 0),
        )
    return product


def rescale_and_add(tile, factor, addend):
    """tile = tile * factor + addend, in place; factor is one number per partition."""
    nisa.scalar_tensor_tensor(
        dst=tile, data=tile, op0=nl.multiply, operand0=factor, op1=nl.add, operand1=addend
    )


def make_identity(n, dtype):
    """The n x n identity matrix: ones, kept where partition - column == 0."""
    ones = nl.ndarray((n, n), dtype=dtype, buffer=nl.sbuf)
    nisa.memset(dst=ones, value=1.0)
    identity = nl.ndarray((n, n), dtype=dtype, buffer=nl.sbuf)
    nisa.affine_select(
        dst=identity,
        pattern=[[-1, n]],
        channel_multiplier=1,
        on_true_tile=ones,
        on_false_value=0.0,
        cmp_op=nl.equal,
    )
    return identity
