"""Matrix products with the structure of published tutorials, written for the current NKI.

They follow the kernel optimisation tutorial's versions 2 to 5, and the tuned ones of the matrix
multiplication tutorial.
"""

import nki
import nki.isa as nisa
import nki.language as nl

P, N = 128, 512


@nki.jit
def tiled(turned, rhs):
    """Version 2: both operands are loaded for every product."""
    depth, height = turned.shape
    columns = rhs.shape[1]
    out = nl.ndarray((height, columns), dtype=turned.dtype, buffer=nl.shared_hbm)
    for m in range(height // P):
        for n in range(columns // N):
            acc = nl.ndarray((P, N), dtype=nl.float32, buffer=nl.psum)
            for k in range(depth // P):
                left = nl.ndarray((P, P), dtype=turned.dtype, buffer=nl.sbuf)
                right = nl.ndarray((P, N), dtype=rhs.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=left, src=turned[nl.ds(k * P, P), nl.ds(m * P, P)])
                nisa.dma_copy(dst=right, src=rhs[nl.ds(k * P, P), nl.ds(n * N, N)])
                nisa.nc_matmul(dst=acc, stationary=left, moving=right, accumulate=k > 0)
            _stored(out, acc, m * P, n * N)
    return out


@nki.jit
def hoisted(turned, rhs):
    """Version 3: a row of the left operand stays while it is used."""
    depth, height = turned.shape
    columns = rhs.shape[1]
    out = nl.ndarray((height, columns), dtype=turned.dtype, buffer=nl.shared_hbm)
    for m in range(height // P):
        left = _loaded(turned, 0, depth, m * P, P)
        for n in range(columns // N):
            acc = nl.ndarray((P, N), dtype=nl.float32, buffer=nl.psum)
            for k in range(depth // P):
                right = nl.ndarray((P, N), dtype=rhs.dtype, buffer=nl.sbuf)
                nisa.dma_copy(dst=right, src=rhs[nl.ds(k * P, P), nl.ds(n * N, N)])
                nisa.nc_matmul(dst=acc, stationary=left[k], moving=right, accumulate=k > 0)
            _stored(out, acc, m * P, n * N)
    return out


@nki.jit
def blocked(turned, rhs, rows=2, wide=2):
    """Version 4: blocks of `rows` x `wide` tiles use each load several times.

    In a deep product, the tiles of a block together exceed SBUF.
    """
    depth, height = turned.shape
    columns = rhs.shape[1]
    out = nl.ndarray((height, columns), dtype=turned.dtype, buffer=nl.shared_hbm)
    for m in range(height // (P * rows)):
        left = [_loaded(turned, 0, depth, (m * rows + i) * P, P) for i in range(rows)]
        for n in range(columns // (N * wide)):
            right = [_loaded(rhs, 0, depth, (n * wide + j) * N, N) for j in range(wide)]
            for i in range(rows):
                for j in range(wide):
                    acc = nl.ndarray((P, N), dtype=nl.float32, buffer=nl.psum)
                    for k in range(depth // P):
                        nisa.nc_matmul(
                            dst=acc, stationary=left[i][k], moving=right[j][k], accumulate=k > 0
                        )
                    _stored(out, acc, (m * rows + i) * P, (n * wide + j) * N)
    return out


@nki.jit
def blocked_all(turned, rhs, rows=16, wide=2, deep=8):
    """Version 5: blocks along the contraction too.

    Sums of all rows of a block of columns are kept in SBUF; together with a block of each operand
    they exceed it at 4,096 rows.
    """
    depth, height = turned.shape
    columns = rhs.shape[1]
    out = nl.ndarray((height, columns), dtype=turned.dtype, buffer=nl.shared_hbm)
    for n in range(columns // (N * wide)):
        sums = [[_zeros() for _ in range(wide)] for _ in range(height // P)]
        for k in range(depth // (P * deep)):
            right = _loaded(rhs, k * P * deep, P * deep, n * N * wide, N * wide)
            for m in range(height // (P * rows)):
                left = _loaded(turned, k * P * deep, P * deep, m * P * rows, P * rows)
                for j in range(wide):
                    for i in range(rows):
                        _block(sums[m * rows + i][j], left, right, i, j)
        for i in range(height // P):
            packed = nl.ndarray((P, N * wide), dtype=out.dtype, buffer=nl.sbuf)
            for j in range(wide):
                nisa.tensor_copy(dst=packed[:, nl.ds(j * N, N)], src=sums[i][j])
            nisa.dma_copy(dst=out[nl.ds(i * P, P), nl.ds(n * N * wide, N * wide)], src=packed)
    return out


def _zeros():
    tile = nl.ndarray((P, N), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=tile, value=0.0)
    return tile


def _block(total, left, right, i, j):
    acc = nl.ndarray((P, N), dtype=nl.float32, buffer=nl.psum)
    for k in range(len(left)):
        nisa.nc_matmul(
            dst=acc,
            stationary=left[k][:, nl.ds(i * P, P)],
            moving=right[k][:, nl.ds(j * N, N)],
            accumulate=k > 0,
        )
    nisa.tensor_tensor(dst=total, data1=total, data2=acc, op=nl.add)


def _loaded(source, row, rows, column, columns):
    """Load tiles of 128 rows."""
    tiles = []
    for k in range(rows // P):
        tile = nl.ndarray((P, columns), dtype=source.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=source[nl.ds(row + k * P, P), nl.ds(column, columns)])
        tiles.append(tile)
    return tiles


def _stored(out, acc, row, column):
    tile = nl.ndarray((P, N), dtype=out.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=tile, src=acc)
    nisa.dma_copy(dst=out[nl.ds(row, P), nl.ds(column, N)], src=tile)
