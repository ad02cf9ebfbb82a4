# /// nkic
# nki = "beta1"
# [args]
# a = "float32[4, 128, 64]"
# b = "float32[4, 128, 256]"
# ///
# Products that have a name before they are added.
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a, b):
    out = nl.ndarray((6, 64, 256), dtype=nl.float32, buffer=nl.shared_hbm)
    # Only the sum reads it.
    total = nl.zeros((64, 256), dtype=nl.float32, buffer=nl.psum)
    for i in nl.affine_range(4):
        # one of four
        product = nl.matmul(nl.load(a[i]), nl.load(b[i]), transpose_x=True)
        total += product
    nl.store(out[0], nl.copy(total))

    # An instruction, twice.
    left, right = nl.load(a[0]), nl.load(b[0])
    both = nl.zeros((64, 256), dtype=nl.float32, buffer=nl.psum)
    product = nisa.nc_matmul(left, right)
    both[...] += product
    product = nisa.nc_matmul(left, right)
    both[...] += product
    both += nl.matmul(left, right, transpose_x=True)
    nl.store(out[1], nl.copy(both))

    # It is read again.
    once = nl.zeros((64, 256), dtype=nl.float32, buffer=nl.psum)
    kept = nisa.nc_matmul(left, right)
    once += kept
    nl.store(out[2], nl.copy(kept))
    rows = nl.load(a[1, 0:64])
    other = nl.matmul(rows, right[0:64])
    once += other
    once += nl.matmul(left, right, transpose_x=True)
    nl.store(out[3], nl.copy(once))
    nl.store(out[4], nl.copy(other))

    # Another instruction is between them, so Beta 1 adds the value.
    late = nl.copy(right[0:64])
    value = nl.matmul(left, right, transpose_x=True)
    late[...] = nl.exp(late)
    late += value
    nl.store(out[5], late)
    return out
