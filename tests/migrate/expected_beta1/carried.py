# /// nkic
# kernel = "kernel"
# nki = "0.7"
# [args]
# a = "float32[128, 512]"
# ///
"""Numbers that a loop's body changes: the body was traced once, so that no turn sees another's."""

import nki
import nki.compiler as ncc
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    rows, columns = a.shape
    out = nl.ndarray((4, 2, 128, columns), dtype=a.dtype, buffer=nl.shared_hbm)
    total = nl.ndarray((128, columns), dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(total[...], a)
    byte = 0
    weight = 1.0
    # Pairs of tiles, in the same places for every i.
    byte_before = byte
    weight_before = weight
    for i in range(4):
        byte = byte_before
        weight = weight_before
        pair = [nl.ndarray( (nl.par_dim(128), columns), dtype=a.dtype, buffer=nl.sbuf, address=(0, byte + (i_2 % 2) * (columns * 4)), ) for i_2 in range(2)]
        byte += 2 * columns * 4
        both = nl.ndarray(
            (nl.par_dim(128), columns), dtype=a.dtype, buffer=nl.sbuf, 
        address=(0, byte))
        byte += columns * 4
        weight = weight + 0.5
        for j in range(2):
            nisa.dma_copy(pair[j][...], a)
            weight *= 2
            nisa.tensor_scalar(both[...], pair[j], op0=nl.multiply, operand0=weight)
            nl.store(out[i, j], value=both)
    for i in range(3):
        step = 2 * i
        step += 1
        total += nl.load(a) * step
    nl.store(out[0, 0], value=total)
    return out
