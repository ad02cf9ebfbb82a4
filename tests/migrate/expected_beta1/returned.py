# /// nkic
# kernel = "kernel"
# nki = "0.7"
# [args]
# x = "bfloat16[128, 64]"
# ///
"""A kernel that returns tiles: named, made in the return, in PSUM."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    left = nl.load(x)
    product = nl.ndarray((left.shape[1], left.shape[1]), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(product, left, left)
    nl.store(out, value=nl.multiply(left, 2.0, dtype=nl.float32))
    # What the caller sees.
    result = nl.ndarray((left.shape[1], left.shape[0]), dtype=left.dtype, buffer=nl.sbuf)
    nisa.dma_transpose(result, left)
    result_hbm = nl.ndarray(result.shape, dtype=result.dtype, buffer=nl.shared_hbm)
    nl.store(result_hbm, result)
    product_hbm = nl.ndarray(product.shape, dtype=product.dtype, buffer=nl.shared_hbm)
    nl.store(product_hbm, product)
    return result_hbm, out, product_hbm  # three tensors
