# test: check
# args: a=bfloat16[128,512] n=int32[1,1]
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, n):
    x = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    acc = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=acc[:, 0:256], stationary=x[:, 0:128], moving=x[:, 0:256])
    i = nisa.register_alloc()
    nisa.register_load(i, n)
    part = acc.ap([[512, 128], [1, 128]], scalar_offset=i, indirect_dim=1)
    nisa.nc_matmul(part, x[:, 0:128], x[:, 0:128])  # error[partly-accumulated]: part of
    y = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=y, src=acc)
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=y)
    return out
