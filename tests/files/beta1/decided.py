# test: check
# args: a=float32[128,512]
"""A tile is not a condition: its values are not known while the kernel is compiled."""
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    tile = nl.load(a)
    if tile:  # warning[tensor-value]: is always true because it is a tensor, whatever its values
        nl.store(out, tile)
    if tile > 0:  # error[tensor-value]: the values of `tile` are not known
        nl.store(out, tile)
    return out
