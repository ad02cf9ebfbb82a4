# test: check
# args: a=float32[128,64]
"""A block that is not there may be named where a mask hides it, and nowhere else."""
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    blocks = nl.zeros((2, nl.par_dim(128), 64), dtype=a.dtype)
    t = nl.load(a)
    for i in nl.static_range(3):
        blocks[i] = nl.add(t, 1, mask=(i < 2))
    nl.store(out, blocks[1])
    blocks[2] += t  # error[index-out-of-bounds]: index 2 is outside of 0 to 1
    return out
