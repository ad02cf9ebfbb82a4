# test: check
# args: a=float32[128,64] rows=int32[16,1]
"""A slice that leaves its dimension, and patterns that leave their tensors where they are used."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, rows):
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=a)
    half = nl.ndarray((128, 32), dtype=a.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=half, src=tile[:, 48:80])  # error[index-out-of-bounds]: 80
    nisa.tensor_copy(dst=half, src=tile.ap([[64, 128], [2, 32]], offset=2))  # error[pattern-out-of-bounds]: reaches element 64 of a partition; there are 64
    nisa.tensor_copy(dst=half, src=tile.ap([[64, 128], [-1, 32]]))  # error[pattern-out-of-bounds]: begins at element -31 of a partition
    nisa.tensor_copy(dst=half, src=tile.ap([[64, 128], [1, 32]], offset=64))  # error[pattern-out-of-bounds]: reaches partition 128; there are 128
    nisa.tensor_copy(dst=half, src=tile.ap([[64, 128], [1, 32]], offset=-64))  # error[pattern-out-of-bounds]: begins at element -64, before the first
    nisa.dma_copy(dst=half, src=a.ap([[64, 128], [1, 32]], offset=33))  # error[pattern-out-of-bounds]: reaches element 8192; there are 8192
    nisa.dma_copy(dst=half, src=a.ap([[64, 128], [1, 32]], offset=-1))  # error[pattern-out-of-bounds]: begins at element -1
    index = nl.load(rows)
    some = half[0:16]
    nisa.dma_copy(dst=some, src=a.ap([[64, 16], [1, 32]], offset=8161, vector_offset=index))  # error[pattern-out-of-bounds]: reaches element 8192
    nisa.dma_copy(dst=some, src=a.vector_select(0, index.ap([[1, 16], [1, 1]], offset=1))[:, 0:32])  # error[pattern-out-of-bounds]: reaches partition 16
    last = half.ap([[32, 128], [2, 16]], offset=2)  # not used
    if last.shape == half.shape:
        nisa.tensor_copy(dst=half, src=last)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out
