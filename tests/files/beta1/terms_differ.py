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
    nl.matmul(t, nl.load(b))  # error[operand-shape]: x has 64 columns [128, 64], and y 128 rows
    return t
