# test: check
# args: a=float32[128,64]
# grid: 2
"""Instances on one core run one after the other."""
import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray((2, 128, 64), dtype=a.dtype, buffer=nl.shared_hbm)
    # error@+1[not-in-nki]: over 2 instances of the grid (2,): there must be two, one on each core
    t = nl.all_reduce(nl.load(a), op=np.add, program_axes=0)
    nl.store(out[nl.program_id(0)], t)
    return out
