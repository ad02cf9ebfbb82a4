# /// nkic
# kernel = "kernel"
# nki = "beta1"
# [args]
# x = "bfloat16[256, 128]"
# y = "bfloat16[256, 512]"
# ///
"""Instructions that return tiles: named, nested, assigned to a part, added to in PSUM."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit(mode="simulation")
def kernel(x, y):
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    total = nl.zeros((128, 512), dtype=nl.float32, buffer=nl.psum)
    for k in nl.affine_range(2):
        # One step of the product.
        left = nl.load(x[k * 128 : (k + 1) * 128, 0:128])
        right = nl.load(y[k * 128 : (k + 1) * 128, 0:512])
        total += nisa.nc_matmul(left, right)
    product = nl.copy(total)
    row: nl.tile_size = nisa.tensor_reduce(np.max, product, axis=1, keepdims=True)  # a column
    product = nisa.tensor_scalar(product, np.subtract, row, dtype=nl.float32)
    product[:, 0:256] = nisa.activation(nl.exp, product[:, 0:256])
    nl.store(out, value=nisa.tensor_tensor(product, nisa.tensor_copy(product), op=np.multiply))
    return out
