# /// nkic
# nki = "beta1"
# [args]
# a = "float32[4, 128, 64]"
# b = "float32[4, 128, 256]"
# ///
# Products assigned and added to tiles that were written before.
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a, b):
    out = nl.ndarray((9, 64, 256), dtype=nl.float32, buffer=nl.shared_hbm)
    total = nl.ndarray((64, 256), dtype=nl.float32, buffer=nl.psum)
    for i in nl.affine_range(4):
        total[...] = nl.matmul(nl.load(a[i]), nl.load(b[i]), transpose_x=True)
        nl.store(out[i], nl.copy(total))

    # A part, then all of it.
    parts = nl.ndarray((64, 256), dtype=nl.float32, buffer=nl.psum)
    parts[0:32] = nisa.nc_matmul(nl.load(a[1, :, 0:32]), nl.load(b[0]))
    parts[0:64] = nisa.nc_matmul(nl.load(a[2]), nl.load(b[0]))
    nl.store(out[4], nl.copy(parts))

    # A sum that begins again.
    again = nl.ndarray((64, 256), dtype=nl.float32, buffer=nl.psum)
    again[...] = nisa.nc_matmul(nl.load(a[0]), nl.load(b[0]))
    again[...] += nisa.nc_matmul(nl.load(a[1]), nl.load(b[1]))
    again[...] = nisa.nc_matmul(nl.load(a[2]), nl.load(b[2]))
    again[...] += nisa.nc_matmul(nl.load(a[3]), nl.load(b[3]))
    nl.store(out[5], nl.copy(again))

    # Sums over a part: the others are zeros.
    some = nl.zeros((64, 256), dtype=nl.float32, buffer=nl.psum)
    for i in nl.affine_range(4):
        some[0:32] += nl.matmul(nl.load(a[i, :, 0:32]), nl.load(b[i]), transpose_x=True)
    nl.store(out[6], nl.copy(some))

    # A product that is assigned by its name, and read again.
    twice = nl.ndarray((64, 256), dtype=nl.float32, buffer=nl.psum)
    product = nisa.nc_matmul(nl.load(a[3]), nl.load(b[0]))
    twice[...] = product
    twice[...] += product
    nl.store(out[7], nl.copy(twice))

    # A mask bounds the rows that are contracted.
    i_k, i_m, i_n = nl.arange(128)[:, None], nl.arange(64)[None, :], nl.arange(256)[None, :]
    left, right = nl.load(a[0]), nl.load(b[1])
    fewer = nisa.nc_matmul(left[i_k, i_m], right[i_k, i_n], mask=i_k < 100)
    nl.store(out[8], nl.copy(fewer))
    return out
