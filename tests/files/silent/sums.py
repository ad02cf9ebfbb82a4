# test: compile
# args: a=bfloat16[128,512]
"""A sum is read before another one takes its place."""
import nki
import nki.isa as nisa
import nki.language as nl


def matmul(dst, x, k, accumulate):
    w = x[:, k * 128 : k * 128 + 128]
    # warning@+1[NKI0532]: nc_matmul overwrites the sum in `lost`, which nothing has read
    nisa.nc_matmul(dst=dst, stationary=w, moving=x, accumulate=accumulate)


@nki.jit
def kernel(a):
    out = nl.ndarray((3, 128, 512), dtype=a.dtype, buffer=nl.shared_hbm)
    x = nl.ndarray((128, 512), dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    y = nl.ndarray((128, 512), dtype=a.dtype, buffer=nl.sbuf)
    lost = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    for k in range(4):
        matmul(lost, x, k, False)
    nisa.tensor_copy(dst=y, src=lost)
    nisa.dma_copy(dst=out[0], src=y)
    total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    for k in range(4):
        matmul(total, x, k, k > 0)
    nisa.tensor_copy(dst=y, src=total)
    nisa.dma_copy(dst=out[1], src=y)
    for k in range(4):  # each product is read
        matmul(total, x, k, False)
        nisa.tensor_copy(dst=y, src=total)
    nisa.dma_copy(dst=out[2], src=y)
    return out
