# test: check
# args: a=float32[256,700]
"""An index beyond a row does not go on in the next one."""
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray((128, 512), dtype=a.dtype, buffer=nl.shared_hbm)
    ip, i_f = nl.mgrid[0:128, 0:512]
    # error@+1[index-out-of-bounds]: the index of dimension 1 goes from 512 to 1023, which has 700
    nl.store(out[ip, i_f], nl.load(a[ip, 512 + i_f]))
    return out
