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
    nl.load(a[0:128, 0 : 64 / 2])  # error[bad-index]: the bounds of a slice must be ints, not 32.0
    return t
