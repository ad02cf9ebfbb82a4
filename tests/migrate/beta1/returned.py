# /// nkic
# kernel = "kernel"
# nki = "beta1"
# [args]
# x = "bfloat16[128, 64]"
# ///
"""A kernel that returns tiles: named, made in the return, in PSUM."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.load(x)
    product = nisa.nc_matmul(left, left)
    nl.store(out, value=nl.multiply(left, 2.0))
    # What the caller sees.
    return nisa.dma_transpose(left), out, product  # three tensors
