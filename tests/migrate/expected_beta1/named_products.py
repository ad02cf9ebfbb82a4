# /// nkic
# nki = "0.7"
# [args]
# a = "float32[4, 128, 64]"
# b = "float32[4, 128, 256]"
# ///
# Products that have a name before they are added.
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, b):
    out = nl.ndarray((6, 64, 256), dtype=nl.float32, buffer=nl.shared_hbm)
    # Only the sum reads it.
    total = nl.ndarray((64, 256), dtype=nl.float32, buffer=nl.psum)
    for i in range(4):
        # one of four
        nisa.nc_matmul(total, nl.load(a[i]), nl.load(b[i]))
    nl.store(out[0], nl.copy(total))

    # An instruction, twice.
    left, right = nl.load(a[0]), nl.load(b[0])
    both = nl.ndarray((64, 256), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(both[...], left, right)
    nisa.nc_matmul(both[...], left, right)
    nisa.nc_matmul(both, left, right)
    nl.store(out[1], nl.copy(both))

    # It is read again.
    once = nl.ndarray((64, 256), dtype=nl.float32, buffer=nl.psum)
    kept = nl.ndarray((64, 256), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(kept, left, right)
    nisa.nc_matmul(once, left, right)
    nl.store(out[2], nl.copy(kept))
    rows = nl.load(a[1, 0:64])
    other = nl.matmul(rows, right[0:64])
    nisa.nc_matmul(once, nl.copy(nl.transpose(rows)), right[0:64])
    nisa.nc_matmul(once, left, right)
    nl.store(out[3], nl.copy(once))
    nl.store(out[4], nl.copy(other))

    # Another instruction is between them, so Beta 1 adds the value.
    late = nl.copy(right[0:64])
    value = nl.matmul(left, right, transpose_x=True)
    late[...] = nl.exp(late)
    late += value
    nl.store(out[5], late)
    return out
