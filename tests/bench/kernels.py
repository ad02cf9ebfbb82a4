# ruff: noqa: N806
"""Kernels of the table of runs: each makes its result and has a body that fills it, so that an
interpreter that wants results among its arguments can run the body.

Instructions are those that Beta 2 had, without options that came later: the first product into a
tile of PSUM writes, the next ones add.
"""

import nki
import nki.isa as nisa
import nki.language as nl

P = 128
CHUNK = 512


def add_into(out, a, b, width=CHUNK):
    M, N = a.shape
    for m in range(M // P):
        for n in range(N // width):
            rows, columns = nl.ds(m * P, P), nl.ds(n * width, width)
            x = nl.ndarray((P, width), dtype=a.dtype, buffer=nl.sbuf)
            y = nl.ndarray((P, width), dtype=a.dtype, buffer=nl.sbuf)
            z = nl.ndarray((P, width), dtype=a.dtype, buffer=nl.sbuf)
            nisa.dma_copy(dst=x, src=a[rows, columns])
            nisa.dma_copy(dst=y, src=b[rows, columns])
            nisa.tensor_tensor(dst=z, data1=x, data2=y, op=nl.add)
            nisa.dma_copy(dst=out[rows, columns], src=z)


def matmul_naive_into(out, a, b):
    K, M = a.shape
    _, N = b.shape
    for m in range(M // P):
        for n in range(N // CHUNK):
            acc = nl.ndarray((P, CHUNK), dtype=nl.float32, buffer=nl.psum)
            for k in range(K // P):
                left = nl.ndarray((P, P), dtype=a.dtype, buffer=nl.sbuf)
                right = nl.ndarray((P, CHUNK), dtype=b.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=left, src=a[nl.ds(k * P, P), nl.ds(m * P, P)])
                nisa.dma_copy(dst=right, src=b[nl.ds(k * P, P), nl.ds(n * CHUNK, CHUNK)])
                nisa.nc_matmul(dst=acc, stationary=left, moving=right)
            leave(out[nl.ds(m * P, P), nl.ds(n * CHUNK, CHUNK)], acc)


def matmul_hoisted_into(out, a, b):
    K, M = a.shape
    _, N = b.shape
    lefts, rights = [], []
    for k in range(K // P):
        left = nl.ndarray((P, M), dtype=a.dtype, buffer=nl.sbuf)
        right = nl.ndarray((P, N), dtype=b.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=left, src=a[nl.ds(k * P, P), nl.ds(0, M)])
        nisa.dma_copy(dst=right, src=b[nl.ds(k * P, P), nl.ds(0, N)])
        lefts.append(left)
        rights.append(right)
    for m in range(M // P):
        for n in range(N // CHUNK):
            acc = nl.ndarray((P, CHUNK), dtype=nl.float32, buffer=nl.psum)
            for k in range(K // P):
                left = lefts[k][nl.ds(0, P), nl.ds(m * P, P)]
                right = rights[k][nl.ds(0, P), nl.ds(n * CHUNK, CHUNK)]
                nisa.nc_matmul(dst=acc, stationary=left, moving=right)
            leave(out[nl.ds(m * P, P), nl.ds(n * CHUNK, CHUNK)], acc)


def leave(out, acc):
    tile = nl.ndarray((P, CHUNK), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=tile, src=acc)
    nisa.dma_copy(dst=out, src=tile)


def softmax_into(out, x):
    M, N = x.shape
    for m in range(M // P):
        data = nl.ndarray((P, N), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=data, src=x[nl.ds(m * P, P), nl.ds(0, N)])
        neg_max = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(
            dst=neg_max, op=nl.maximum, data=data, axis=1, negate=True, keepdims=True
        )
        exps = nl.ndarray((P, N), dtype=nl.float32, buffer=nl.sbuf)
        total = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
        exponentials(exps, total, data, neg_max, 1.0)
        inverse = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.reciprocal(dst=inverse, data=total)
        y = nl.ndarray((P, N), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=y, data=exps, op0=nl.multiply, operand0=inverse)
        nisa.dma_copy(dst=out[nl.ds(m * P, P), nl.ds(0, N)], src=y)


def exponentials(dst, total, data, bias, scale):
    nisa.activation(
        dst=dst,
        op=nl.exp,
        data=data,
        scale=scale,
        bias=bias,
        reduce_op=nl.add,
        reduce_res=total,
        reduce_cmd=nisa.reduce_cmd.reset_reduce,
    )


def rmsnorm_into(out, x, weight):
    M, N = x.shape
    weights = nl.ndarray((P, N), dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=weights, src=weight)
    for m in range(M // P):
        data = nl.ndarray((P, N), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=data, src=x[nl.ds(m * P, P), nl.ds(0, N)])
        squares = nl.ndarray((P, N), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=squares, data1=data, data2=data, op=nl.multiply)
        total = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=total, op=nl.add, data=squares, axis=1, keepdims=True)
        mean = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(
            dst=mean, data=total, op0=nl.multiply, operand0=1.0 / N, op1=nl.add, operand1=1e-6
        )
        inverse = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=inverse, op=nl.rsqrt, data=mean)
        scaled = nl.ndarray((P, N), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=scaled, data=data, op0=nl.multiply, operand0=inverse)
        y = nl.ndarray((P, N), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=y, data1=scaled, data2=weights, op=nl.multiply)
        nisa.dma_copy(dst=out[nl.ds(m * P, P), nl.ds(0, N)], src=y)


def attention_into(out, q, k, v, identity):
    """q and k are (128, S), v and the result (S, 128): softmax(q.T @ k / sqrt(128)) @ v."""
    d, S = q.shape
    scale = 1.0 / d**0.5
    eye = nl.ndarray((P, P), dtype=q.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=eye, src=identity)
    keys, values = [], []
    for c in range(S // CHUNK):
        key = nl.ndarray((P, CHUNK), dtype=k.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=key, src=k[nl.ds(0, P), nl.ds(c * CHUNK, CHUNK)])
        keys.append(key)
    for c in range(S // P):
        value = nl.ndarray((P, P), dtype=v.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=value, src=v[nl.ds(c * P, P), nl.ds(0, P)])
        values.append(value)
    for row in range(S // P):
        query = nl.ndarray((P, P), dtype=q.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=query, src=q[nl.ds(0, P), nl.ds(row * P, P)])
        acc, total, neg_max = None, None, None
        for c in range(S // CHUNK):
            scores = nl.ndarray((P, CHUNK), dtype=nl.float32, buffer=nl.psum)
            nisa.nc_matmul(dst=scores, stationary=query, moving=keys[c])
            new_max = lesser(scores, neg_max, scale)
            weights = nl.ndarray((P, CHUNK), dtype=v.dtype, buffer=nl.sbuf)
            part = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
            exponentials(weights, part, scores, new_max, scale)
            product = nl.ndarray((P, P), dtype=nl.float32, buffer=nl.psum)
            for t in range(CHUNK // P):
                turned = transposed(weights[nl.ds(0, P), nl.ds(t * P, P)], eye)
                nisa.nc_matmul(
                    dst=product,
                    stationary=turned,
                    moving=values[c * (CHUNK // P) + t],
                )
            if neg_max is None:
                acc = nl.ndarray((P, P), dtype=nl.float32, buffer=nl.sbuf)
                nisa.tensor_copy(dst=acc, src=product)
                total = part
            else:
                shrink = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
                nisa.activation(dst=shrink, op=nl.exp, data=neg_max, scale=-1.0, bias=new_max)
                acc = grown(acc, shrink, product)
                total = grown(total, shrink, part)
            neg_max = new_max
        inverse = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.reciprocal(dst=inverse, data=total)
        y = nl.ndarray((P, P), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=y, data=acc, op0=nl.multiply, operand0=inverse)
        nisa.dma_copy(dst=out[nl.ds(row * P, P), nl.ds(0, P)], src=y)


def lesser(scores, neg_max, scale):
    """Minus the greatest score so far, scaled."""
    found = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=found, op=nl.maximum, data=scores, axis=1, negate=True, keepdims=True)
    scaled = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=scaled, data=found, op0=nl.multiply, operand0=scale)
    if neg_max is None:
        return scaled
    new = nl.ndarray((P, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=new, data1=scaled, data2=neg_max, op=nl.minimum)
    return new


def transposed(tile, eye):
    """As a product with the identity, which every version of the tensor engine can do."""
    turned = nl.ndarray((P, P), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=turned, stationary=tile, moving=eye)
    copy = nl.ndarray((P, P), dtype=tile.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=copy, src=turned)
    return copy


def grown(sum, shrink, part):
    less = nl.ndarray(sum.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=less, data=sum, op0=nl.multiply, operand0=shrink)
    more = nl.ndarray(sum.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_tensor(dst=more, data1=less, data2=part, op=nl.add)
    return more


@nki.jit
def add(a, b, width=CHUNK):
    out = nl.ndarray(a.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    add_into(out, a, b, width)
    return out


@nki.jit
def matmul_naive(a, b):
    out = nl.ndarray((a.shape[1], b.shape[1]), dtype=nl.float32, buffer=nl.shared_hbm)
    matmul_naive_into(out, a, b)
    return out


@nki.jit
def matmul_hoisted(a, b):
    out = nl.ndarray((a.shape[1], b.shape[1]), dtype=nl.float32, buffer=nl.shared_hbm)
    matmul_hoisted_into(out, a, b)
    return out


@nki.jit
def softmax(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    softmax_into(out, x)
    return out


@nki.jit
def rmsnorm(x, weight):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    rmsnorm_into(out, x, weight)
    return out


@nki.jit
def attention(q, k, v, identity):
    out = nl.ndarray(v.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    attention_into(out, q, k, v, identity)
    return out
