# test: compile
# target: trn3
"""NeuronCore-v4 writes across banks."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel():
    one = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.memset(dst=one, value=1.0)
    wide = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=wide[:, 256:768], stationary=one[:, 0:128], moving=one)
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    y = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=y, src=wide[:, 256:768])
    nisa.dma_copy(dst=out, src=y)
    return out
