"""Vectors as rows of 128 partitions; what does not fill 128 is one short row."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def vector_add(a, b):
    (n,) = a.shape
    c = nl.ndarray((n,), dtype=a.dtype, buffer=nl.shared_hbm)
    rows = nl.tile_size.pmax
    whole = n - n % rows
    for first, last, p in ((0, whole, rows), (whole, n, 1)):
        if first < last:
            shape = (p, (last - first) // p)
            left, right = load(a[first:last], shape), load(b[first:last], shape)
            nisa.tensor_tensor(dst=left, data1=left, data2=right, op=nl.add)
            nisa.dma_copy(dst=c[first:last].reshape(shape), src=left)
    return c


def load(vector, shape):
    tile = nl.ndarray(shape, dtype=vector.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=vector.reshape(shape))
    return tile
