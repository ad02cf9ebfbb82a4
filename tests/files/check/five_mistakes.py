# test: check
# args: a=float32[256,64]
"""Independent mistakes are all reported in one run, found by four different stages."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def wrong(a):
    tall = nl.ndarray((200, 64), dtype=a.dtype, buffer=nl.sbuf)  # error[too-many-partitions]: 200
    tile = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
    nisa.memset(dst=tall, value=0.0)
    nisa.dma_copy(dst=tile, src=a[0:128, 0:32])  # error[element-count-mismatch]: 4096
    nisa.dma_copy(dst=tile, src=a[200:328, 0:64])  # error[index-out-of-bounds]: 328
    nisa.nc_matmul(dst=tile, stationary=tile, moving=tile)  # error[buffer-not-allowed]: `dst`
    huge = nl.ndarray((128, 60000), dtype=nl.float32, buffer=nl.sbuf)  # error[sbuf-overflow]: 240,000 bytes
    nisa.memset(dst=huge, value=0.0)
    nisa.dma_copy(dst=tile, src=a[0:128, :])
    out = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=tile)
    return out
