# /// nkic
# kernel = "kernel"
# nki = "0.7"
# [args]
# x = "bfloat16[256, 128]"
# y = "bfloat16[256, 512]"
# ///
"""Instructions that return tiles: named, nested, assigned to a part, added to in PSUM."""

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np


@nki.jit
def kernel(x, y):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    total = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    for k in range(2):
        # One step of the product.
        left = nl.load(x[k * 128 : (k + 1) * 128, 0:128])
        right = nl.load(y[k * 128 : (k + 1) * 128, 0:512])
        nisa.nc_matmul(total, left, right)
    product = nl.copy(total)
    row: nl.tile_size = nl.ndarray((product.shape[0], 1), dtype=product.dtype, buffer=nl.sbuf)
    nisa.tensor_reduce(row, nl.maximum, product, axis=1, keepdims=True)  # a column
    new_product = nl.ndarray(product.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar(new_product, product, nl.subtract, row)
    product = new_product
    nisa.activation(product[:, 0:256], nl.exp, product[:, 0:256])
    tile = nl.ndarray(product.shape, dtype=product.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(tile, product)
    tile_2 = nl.ndarray(product.shape, dtype=product.dtype, buffer=nl.sbuf)
    nisa.tensor_tensor(tile_2, product, tile, op=nl.multiply)
    nl.store(out, value=tile_2)
    return out
