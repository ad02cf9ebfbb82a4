# test: compile
# target: trn2
"""What matmuls add to was begun by a matmul: before NeuronCore-v4."""
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

    cleared = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.memset(dst=cleared, value=0.0)
    # warning@+1[NKI0701]: nc_matmul accumulates onto what memset wrote into `cleared`, which is
    nisa.nc_matmul(dst=cleared, stationary=one, moving=one, accumulate=True)
    nisa.nc_matmul(dst=cleared, stationary=one, moving=one, accumulate=True)

    begun = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.memset(dst=begun, value=0.0)
    for k in range(3):
        nisa.nc_matmul(dst=begun, stationary=one, moving=one, accumulate=k > 0)

    scaled = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=scaled, stationary=one, moving=one)
    nisa.tensor_scalar(dst=scaled[0:64], data=scaled[0:64], op0=nl.multiply, operand0=0.5)
    # Only half of it is a stranger's.
    # warning@+1[NKI0701]: nc_matmul accumulates onto what tensor_scalar wrote into `scaled`, which
    nisa.nc_matmul(dst=scaled, stationary=one, moving=one)

    halves = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.memset(dst=halves[:, 0:64], value=0.0)
    nisa.nc_matmul(dst=halves[:, 64:128], stationary=one, moving=one[:, 0:64])
    nisa.nc_matmul(
        dst=halves[:, 64:128], stationary=one, moving=one[:, 0:64], accumulate=True
    )

    whole = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.memset(dst=whole, value=0.0)
    for half in range(2):
        part = whole[:, half * 64 : half * 64 + 64]
        nisa.nc_matmul(dst=part, stationary=one, moving=one[:, 0:64], accumulate=False)
    nisa.nc_matmul(dst=whole, stationary=one, moving=one, accumulate=True)

    def turn(i):
        # warning@+1[NKI0701]: nc_matmul accumulates onto what memset wrote into `moved`, which is
        nisa.nc_matmul(
            dst=moved[:, nl.ds(i, 64)], stationary=one, moving=one[:, 0:64], accumulate=True
        )
        nisa.nc_matmul(
            dst=mixed[:, nl.ds(i, 64)], stationary=one, moving=one[:, 0:64], accumulate=True
        )

    # Wherever it adds, only memset has written; of the other tile a matmul wrote a part.
    moved = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.memset(dst=moved, value=0.0)
    mixed = nl.ndarray((128, 128), dtype=nl.float32, buffer=nl.psum)
    nisa.memset(dst=mixed, value=0.0)
    nisa.nc_matmul(dst=mixed[:, 0:64], stationary=one, moving=one[:, 0:64], accumulate=False)
    nl.fori_loop(0, 128, turn, 64)
    return (
        *(result(cleared), result(begun), result(scaled), result(halves), result(whole)),
        *(result(moved), result(mixed)),
    )
