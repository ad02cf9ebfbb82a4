# /// nkic
# kernel = "kernel"
# nki = "beta1"
# [args]
# a = "float32[128, 512]"
# ///
"""Allocators, blocks with addresses, and a sum over the turns of a loop."""

import neuronxcc.nki as nki
import neuronxcc.nki.compiler as ncc
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np

sb_mod = ncc.sbuf.mod_alloc


class Places:
    def __init__(self):
        self.used = 4096

    def take(self, size):
        first = self.used
        self.used += size
        return sb_mod(base_addr=first)


@nki.jit
def kernel(a):
    places = Places()
    out = nl.ndarray((128, 128), dtype=a.dtype, buffer=nl.shared_hbm)
    parts = nl.ndarray(
        (4, nl.par_dim(128), 128),
        dtype=a.dtype,
        buffer=ncc.sbuf.mod_alloc(base_addr=0, num_free_tiles=(2,)),
    )
    total = nl.ndarray((128, 128), dtype=a.dtype, buffer=places.take(512))
    products = nl.ndarray((4, nl.par_dim(128), 128), dtype=nl.float32, buffer=nl.psum)

    def product(k):
        products[k] = nisa.nc_matmul(parts[k], parts[k])

    for k in nl.affine_range(4):
        parts[k] = nl.load(a[0:128, k * 128 : (k + 1) * 128])
        product(k)
        total[...] = nl.loop_reduce(products[k], op=np.add, loop_indices=[k], dtype=a.dtype)
    nl.store(out, value=total)
    return out
