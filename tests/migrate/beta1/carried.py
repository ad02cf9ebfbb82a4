# /// nkic
# kernel = "kernel"
# nki = "beta1"
# [args]
# a = "float32[128, 512]"
# ///
"""Numbers that a loop's body changes: the body was traced once, so that no turn sees another's."""

import neuronxcc.nki as nki
import neuronxcc.nki.compiler as ncc
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a):
    rows, columns = a.shape
    out = nl.ndarray((4, 2, 128, columns), dtype=a.dtype, buffer=nl.shared_hbm)
    total = nl.ndarray((128, columns), dtype=a.dtype, buffer=nl.sbuf)
    total[...] = nl.load(a)
    byte = 0
    weight = 1.0
    # Pairs of tiles, in the same places for every i.
    for i in nl.affine_range(4):
        pair = nl.ndarray(
            (2, nl.par_dim(128), columns),
            dtype=a.dtype,
            buffer=ncc.sbuf.mod_alloc(base_addr=byte, num_free_tiles=(2,)),
        )
        byte += 2 * columns * 4
        both = nl.ndarray(
            (nl.par_dim(128), columns), dtype=a.dtype, buffer=ncc.sbuf.mod_alloc(base_addr=byte)
        )
        byte += columns * 4
        weight = weight + 0.5
        for j in nl.static_range(2):
            pair[j] = nl.load(a)
            weight *= 2
            both[...] = nisa.tensor_scalar(pair[j], op0=nl.multiply, operand0=weight)
            nl.store(out[i, j], value=both)
    for i in nl.sequential_range(3):
        step = 2 * i
        step += 1
        total += nl.load(a) * step
    nl.store(out[0, 0], value=total)
    return out
