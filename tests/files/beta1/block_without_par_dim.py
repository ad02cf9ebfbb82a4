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
    nl.ndarray((4, 128, 64), nl.float32)[0] = t  # error[operand-shape]: cannot be assigned to one of shape (1, 128, 64)
    return t
