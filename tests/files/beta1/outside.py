# test: check
# args: a=float32[200,512]
"""What is not masked is read, and must be there."""
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    ip, i_f = nl.mgrid[0:128, 0:512]
    for i in nl.affine_range(2):
        part = nl.load(a[ip, 1 + i_f], mask=(i_f < 511))
        nl.store(out[0:128, 0:511], part[:, 0:511])
        # error@+1[index-out-of-bounds]: dimension 0 goes from 128 to 255, which has 200 elements
        tile = nl.load(a[i * 128 + ip, i_f])
        nl.store(out[i * 128 + ip, i_f], tile, mask=(i * 128 + ip < 200))
    return out
