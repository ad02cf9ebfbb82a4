# test: compile
# args: a=float32[128,64]
# kernel: scaled_by(3, offset=-1.5).kernel
# emit: ir
"""A kernel that a function makes, by a call of it."""
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np


def scaled_by(factor, offset=0.0):
    @nki.jit
    def kernel(a):
        out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
        tile = nisa.tensor_scalar(nl.load(a), np.multiply, factor, op1=np.add, operand1=offset)
        nl.store(out, tile)
        return out

    return kernel
