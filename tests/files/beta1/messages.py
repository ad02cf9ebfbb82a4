# test: check
# args: a=float32[256,512]
"""What cannot be: each error stands where it is made."""
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    blocks = nl.ndarray((2, nl.par_dim(128), 512), dtype=a.dtype)
    for i in nl.affine_range(2):
        blocks[i] = nl.load(a[i * 128 : (i + 1) * 128, :])
    nl.store(out[0:128, :], nl.exp(blocks))  # error[block-dimension]: the first 1 dimension
    return out
