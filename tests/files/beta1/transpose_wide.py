# test: check
# args: a=float32[128,64] b=float32[128,64]
# nki: beta1
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


@nki.jit
def kernel(a, b):
    t = nl.load(a)
    nisa.nc_transpose(nl.zeros((128, 256), nl.float32))  # error[too-many-partitions]: 128 partitions and 256 columns
    return t
