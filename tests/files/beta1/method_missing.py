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
    t.sum(axis=1)  # error[unknown-attribute]: a tensor has no attribute `sum`
    return t
