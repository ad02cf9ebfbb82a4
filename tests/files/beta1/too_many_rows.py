# test: check
# args: a=float32[256,512]
"""A tile has 128 partitions at most."""
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(a))  # error[too-many-partitions]: at most 128 partitions
    return out
