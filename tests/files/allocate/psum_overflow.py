# test: check
# args: a=bfloat16[128,512]
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    sums = []
    for i in range(9):
        acc = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)  # error[NKI0502]: 8 banks are in use, and trn2 has 8 banks
        nisa.nc_matmul(dst=acc, stationary=x[:, 0:128], moving=x)
        sums.append(acc)
    total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=total, value=0.0)
    for acc in sums:
        nisa.tensor_tensor(dst=total, data1=total, data2=acc, op=nl.add)
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    for acc in sums:  # each again, with what all of them add up to
        y = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=y, data1=total, data2=acc, op=nl.multiply)
        nisa.dma_copy(dst=out, src=y)
    return out
