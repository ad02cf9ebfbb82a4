# test: compile
# target: trn2
"""Results of the tensor engine lie within a bank of PSUM, and allocations start at one."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel():
    one = nl.ndarray((128, 512), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.memset(dst=one, value=1.0)
    wide = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=wide[:, 0:512], stationary=one[:, 0:128], moving=one)
    nisa.nc_matmul(dst=wide[:, 512:1024], stationary=one[:, 0:128], moving=one)
    # error@+1[NKI0605]: `dst` covers bytes 1,024 to 3,072 of each partition of PSUM, in banks 0 to 1
    nisa.nc_matmul(dst=wide[:, 256:768], stationary=one[:, 0:128], moving=one)
    # error@+1[NKI0605]: `dst` covers bytes 1,968 to 2,224
    nisa.nc_transpose(dst=wide.view(nl.bfloat16)[:, 984:1112], data=one[:, 0:128])
    out = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.shared_hbm)
    y = nl.ndarray((128, 1024), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=y, src=wide)
    nisa.dma_copy(dst=out, src=y)
    return out
