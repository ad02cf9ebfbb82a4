# test: compile
# args: x=float32[500,512] w=float32[512,64] bias=float32[128,1] mask=float32[128,64] table=float32[64,512] at=int32[128,1] cache=float32[256,64]
"""Inputs are read as a whole, or a run-time offset decides."""
import nki
import nki.isa as nisa
import nki.language as nl


def shape_of(t):
    return t.shape


@nki.jit
# warning@+2[NKI0258]: input `bias` is never read: the kernel does not use it
# warning@+1[NKI0259]: input `x` is read only in part: nothing reads [384:500, 0:512]
def kernel(x, w, bias, mask, table, at, cache):
    out = nl.ndarray(shape_of(mask), dtype=x.dtype, buffer=nl.shared_hbm)
    total = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
    nisa.memset(total, value=0.0)
    for k in range(500 // 128):
        rows = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=rows, src=x[k * 128 : k * 128 + 128])
        nisa.tensor_tensor(dst=total, data1=total, data2=rows, op=nl.add)
    index = nl.ndarray((128, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=index, src=at)
    gathered = nl.ndarray((128, 512), dtype=x.dtype, buffer=nl.sbuf)
    rows = table.ap(pattern=[[512, 128], [1, 512]], vector_offset=index, indirect_dim=0)
    nisa.dma_copy(dst=gathered, src=rows)
    nisa.tensor_tensor(dst=total, data1=total, data2=gathered, op=nl.add)
    y = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
    for k in range(4):
        part = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=part, src=w[k * 128 : k * 128 + 128])
        nisa.tensor_tensor(dst=y, data1=part, data2=total[:, k * 64 : k * 64 + 64], op=nl.add)
        nisa.dma_copy(dst=cache[0:128], src=y)  # updated in part
    nisa.dma_copy(dst=out, src=y)
    return out
