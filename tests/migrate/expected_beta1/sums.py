# /// nkic
# nki = "0.7"
# [args]
# a = "float32[4, 128, 64]"
# b = "float32[4, 128, 256]"
# ///
# Products assigned and added to tiles that were written before.
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, b):
    out = nl.ndarray((9, 64, 256), dtype=nl.float32, buffer=nl.shared_hbm)
    total = nl.ndarray((64, 256), dtype=nl.float32, buffer=nl.psum)
    for i in range(4):
        nisa.nc_matmul(total[...], nl.load(a[i]), nl.load(b[i]), accumulate=False)
        nl.store(out[i], nl.copy(total))

    # A part, then all of it.
    parts = nl.ndarray((64, 256), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(parts[0:32], nl.load(a[1, :, 0:32]), nl.load(b[0]), accumulate=False)
    nisa.nc_matmul(parts[0:64], nl.load(a[2]), nl.load(b[0]), accumulate=False)
    nl.store(out[4], nl.copy(parts))

    # A sum that begins again.
    again = nl.ndarray((64, 256), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(again[...], nl.load(a[0]), nl.load(b[0]), accumulate=False)
    nisa.nc_matmul(again[...], nl.load(a[1]), nl.load(b[1]))
    nisa.nc_matmul(again[...], nl.load(a[2]), nl.load(b[2]), accumulate=False)
    nisa.nc_matmul(again[...], nl.load(a[3]), nl.load(b[3]))
    nl.store(out[5], nl.copy(again))

    # Sums over a part: the others are zeros.
    some = nl.zeros((64, 256), dtype=nl.float32, buffer=nl.psum)
    for i in range(4):
        nisa.nc_matmul(some[0:32], nl.load(a[i, :, 0:32]), nl.load(b[i]))
    nl.store(out[6], nl.copy(some))

    # A product that is assigned by its name, and read again.
    twice = nl.ndarray((64, 256), dtype=nl.float32, buffer=nl.psum)
    product = nl.ndarray((64, 256), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(product, nl.load(a[3]), nl.load(b[0]))
    twice[...] = product
    twice[...] += product
    nl.store(out[7], nl.copy(twice))
    left, right = nl.load(a[0]), nl.load(b[1])
    fewer = nl.ndarray((64, 256), dtype=left.dtype, buffer=nl.psum)
    nisa.nc_matmul(fewer, left[0:min(128, 100), 0:64], right[0:min(128, 100), 0:256])
    nl.store(out[8], nl.copy(fewer))
    return out
