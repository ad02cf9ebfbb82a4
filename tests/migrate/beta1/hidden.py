# /// nkic
# kernel = "kernel"
# nki = "beta1"
# [args]
# a = "float32[256, 512]"
# ///
"""Statements that read what a mask has hidden in some turns, and write what nobody reads then."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a):
    rows, columns = a.shape
    out = nl.ndarray((256, columns), dtype=a.dtype, buffer=nl.shared_hbm)
    kept = nl.ndarray((192, columns), dtype=a.dtype, buffer=nl.shared_hbm)
    held = nl.zeros((128, columns), dtype=a.dtype, buffer=nl.sbuf)
    for i in nl.affine_range(3):
        pair = nl.ndarray((2, nl.par_dim(64), columns), dtype=a.dtype, buffer=nl.psum)
        for j in nl.affine_range(2):
            there = (2 * i + j) * 64 < rows
            once = nl.ndarray((64, columns), dtype=a.dtype, buffer=nl.sbuf)
            twice = nl.ndarray((64, columns), dtype=a.dtype, buffer=nl.sbuf)
            x = nl.load(a[0:64])
            square = nisa.activation(nl.square, x)
            pair[j] = nl.copy(square, mask=there)
            held[0:64, 0:columns] = nl.copy(square, mask=there)
            once[...] = nl.copy(pair[j])
            twice[...] = nisa.tensor_scalar(once, op0=nl.add, operand0=held[0:64, 0:1])
            nl.store(out[nl.ds(((2 * i + j) % 4) * 64, 64)], value=twice, mask=there)
            base = nl.zeros((64, columns), dtype=a.dtype, buffer=nl.sbuf)
            base[...] = nl.copy(square, mask=there)
            if j == 0:
                nl.store(kept[nl.ds(i * 64, 64)], value=base)
    return out, kept
