# test: check
# args: a=float32[128,64]
# lnc: 2
"""What instances fold together is the same in any order, and one is on each core."""
import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray((2, 128, 64), dtype=a.dtype, buffer=nl.shared_hbm)
    t = nl.load(a)
    core = nl.program_id(0)
    nl.store(out[core], nl.all_reduce(t, op=np.add, program_axes=[core]))
    # error@+1[operator-not-supported]: depends on the order of the instances
    nl.all_reduce(t, op=np.subtract, program_axes=[core])
    return out
