# test: compile
# args: a=float32[4,128,64] w=float32[4,128,128]
"""Turns that depend on each other, and those that only add to one place."""
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a, w):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    rest = nl.ndarray((2, 128, 64), dtype=a.dtype, buffer=nl.shared_hbm)
    sums = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    total = nl.zeros((128, 64), dtype=nl.float32)
    greatest = nl.full((128, 64), -1e30, dtype=nl.float32)
    psum = nl.zeros((128, 64), dtype=nl.float32, buffer=nl.psum)
    scratch = nl.ndarray((128, 64), dtype=nl.float32)
    for i in nl.affine_range(4):
        tile = nl.load(a[i])
        psum += nisa.nc_matmul(nl.load(w[i]), tile)
        total += tile
        greatest[...] = nl.maximum(greatest, tile)
        scratch[...] = nl.exp(tile)
        scratch[0:128, 0:32] = nl.copy(tile[0:128, 0:32])
        nl.device_print("t", tile)
        nl.store(out[i], scratch)  # warning[result-not-read]: `out`, which dma_copy overwrites
    nl.store(rest[0], nl.add(total, greatest))
    last = nl.zeros((128, 64), dtype=nl.float32)
    for i in nl.affine_range(4):  # warning[loop-carried]: this affine_range reads `last`
        nl.store(rest[1], last)  # warning[result-not-read]: `rest`, which dma_copy overwrites
        last[...] = nl.load(a[i])
    for i in nl.affine_range(4):  # warning[loop-carried]: this affine_range reads `total`
        total += nl.load(a[i])
        nl.store(out[i], total)
    for i in nl.affine_range(3):  # warning[loop-carried]: where iteration 0 wrote it
        scratch[:, 16 + 16 * i : 32 + 16 * i] = nl.copy(scratch[:, 16 * i : 16 + 16 * i])
    for i in nl.affine_range(4):  # warning[loop-carried]: this affine_range reads `total`
        total[...] = nl.multiply(total, 0.5)
        total += nl.load(a[i])
    for i in nl.sequential_range(4):
        total[...] = nl.multiply(total, 0.5)
        total += nl.load(a[i])
    made = nl.zeros((128, 64), dtype=nl.float32)
    for i in nl.sequential_range(4):  # warning[loop-carried]: a tile that iteration 0 made
        made = nl.add(made, nl.load(a[i]))
    running = nl.zeros((128, 64), dtype=nl.float32, buffer=nl.psum)
    for i in nl.affine_range(4):  # warning[loop-carried]: this affine_range reads `running`
        running += nisa.nc_matmul(nl.load(w[i]), nl.load(a[i]))
        nl.store(sums[i], nl.copy(running))
    unset = nl.zeros((128, 64), dtype=nl.float32, buffer=nl.psum)
    for i in nl.affine_range(4):  # each iteration has its own columns, and the zeros are from before
        columns = slice(16 * i, 16 * i + 16)
        scratch[:, columns] = nl.add(scratch[:, columns], unset[:, columns])
        scratch[:, columns] = nl.add(nl.exp(scratch[:, columns]), unset[:, 0:16])
    for i in nl.affine_range(3):  # warning[loop-carried]: where iteration 0 wrote it
        scratch[:, 16 + 16 * i : 32 + 16 * i] = nl.exp(unset[:, 0:16])
        scratch[:, 0:8] = nl.copy(scratch[:, 16 * i : 8 + 16 * i])
    place = nl.ndarray((128, 64), dtype=nl.float32)
    before = nl.add(total, 1.0)
    place[...] = before
    for i in nl.sequential_range(4):  # `before` gets its own place only here, but is from outside
        place[...] = nl.multiply(place, 0.5)
        before[...] = nl.multiply(before, 0.5)
    after, again = nl.add(before, 0.0), nl.zeros((128, 64), dtype=nl.float32)
    for i in nl.sequential_range(4):  # warning[loop-carried]: iteration 1 of this loop reads `this`
        this = nl.multiply(scratch, 2.0)
        place[...] = this
        place[...] = nl.multiply(place, 2.0)
        again += after
        after = this
    nl.store(rest[1], nl.add(total, scratch))
    nl.store(out[0], made)
    nl.store(sums[3], nl.add(place, again))
    return out, rest, sums
