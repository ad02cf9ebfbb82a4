# /// nkic
# kernel = "kernel"
# nki = "0.7"
# [args]
# a = "float32[256, 512]"
# ///
"""Statements that read what a mask has hidden in some turns, and write what nobody reads then."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    rows, columns = a.shape
    out = nl.ndarray((256, columns), dtype=a.dtype, buffer=nl.shared_hbm)
    kept = nl.ndarray((192, columns), dtype=a.dtype, buffer=nl.shared_hbm)
    held = nl.zeros((128, columns), dtype=a.dtype, buffer=nl.sbuf)
    for i in range(3):
        for j in range(2):
            there = (2 * i + j) * 64 < rows
            once = nl.ndarray((64, columns), dtype=a.dtype, buffer=nl.sbuf)
            twice = nl.ndarray((64, columns), dtype=a.dtype, buffer=nl.sbuf)
            x = nl.load(a[0:64])
            new_square = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
            nisa.activation(new_square, nl.square, x)
            square = new_square
            pair = nl.ndarray((nl.par_dim(64), columns), dtype=a.dtype, buffer=nl.psum)
            if there:
                pair[...] = nl.copy(square)
                held[0:64, 0:columns] = nl.copy(square)
                once[...] = nl.copy(pair)
                nisa.tensor_scalar(twice[...], once, op0=nl.add, operand0=held[0:64, 0:1])
                nl.store(out[nl.ds(((2 * i + j) % 4) * 64, 64)], value=twice)
            base = nl.zeros((64, columns), dtype=a.dtype, buffer=nl.sbuf)
            if there:
                base[...] = nl.copy(square)
            if j == 0:
                nl.store(kept[nl.ds(i * 64, 64)], value=base)
    return out, kept
