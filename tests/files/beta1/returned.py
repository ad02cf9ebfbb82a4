# test: compile
# args: a=float32[3,128,4]
"""The body of a loop is traced once: `return` in it ends the function after all turns."""
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


def stored(out, a):
    for i in nl.affine_range(a.shape[0]):
        nl.store(out[i], nl.load(a[i]) + 1)
        return out


@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    for j in nl.sequential_range(1):
        return stored(out, a)
