# /// nkic
# kernel = "kernel"
# nki = "0.7"
# [args]
# a = "float32[128, 512]"
# ///
"""Allocators, blocks with addresses, and a sum over the turns of a loop."""

import nki
import nki.compiler as ncc
import nki.isa as nisa
import nki.language as nl
import numpy as np


class Places:
    def __init__(self):
        self.used = 4096

    def take(self, size):
        first = self.used
        self.used += size
        return (0, first)


@nki.jit
def kernel(a):
    places = Places()
    out = nl.ndarray((128, 128), dtype=a.dtype, buffer=nl.shared_hbm)
    parts = [nl.ndarray( (nl.par_dim(128), 128), dtype=a.dtype, buffer=nl.sbuf, address=(0, (i % 2) * 512), ) for i in range(4)]
    total = nl.ndarray((128, 128), dtype=a.dtype, buffer=nl.sbuf, address=places.take(512))
    products = [nl.ndarray((nl.par_dim(128), 128), dtype=nl.float32, buffer=nl.psum) for i_2 in range(4)]

    def product(k):
        nisa.nc_matmul(products[k][...], parts[k], parts[k], accumulate=False)

    for k in range(4):
        nisa.dma_copy(parts[k][...], a[0:128, k * 128 : (k + 1) * 128])
        product(k)
        if k == 0:
            total[...] = nl.copy(products[k])
        else:
            total[...] = nl.add(total[...], products[k])
    nl.store(out, value=total)
    return out
