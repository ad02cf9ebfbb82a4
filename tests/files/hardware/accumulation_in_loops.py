# test: compile
"""In a device loop the first write is one of many: `accumulate` is said, where it matters."""
import nki
import nki.isa as nisa
import nki.language as nl


def result(tile):
    out = nl.ndarray(tile.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    y = nl.ndarray(tile.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=y, src=tile)
    nisa.dma_copy(dst=out, src=y)
    return out


@nki.jit
def kernel():
    one = nl.ndarray((128, 128), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.memset(dst=one, value=1.0)
    open_ = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    said = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    begun = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=begun, stationary=one, moving=one)
    last = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.sbuf)

    def turn(i):
        # error@+1[NKI0621]: nc_matmul: `open_` is allocated outside this device loop and no
        nisa.nc_matmul(dst=open_, stationary=one, moving=one)
        nisa.nc_matmul(dst=said, stationary=one, moving=one, accumulate=False)
        nisa.nc_matmul(dst=said, stationary=one, moving=one)
        nisa.nc_matmul(dst=begun, stationary=one, moving=one)
        inside = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(dst=inside, stationary=one, moving=one)
        nisa.tensor_copy(dst=last, src=inside)

    nl.fori_loop(0, 4, turn)
    return result(open_), result(said), result(begun), result(last)
