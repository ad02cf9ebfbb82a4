# test: check
# args: x=float32[128,64] y=float32[1,64]
# nki: beta1
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x, y):
    out = nl.ndarray((1, 128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    row = nl.ndarray((1, 1, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    nl.store(row, nl.load(y)[None, :, :])  # a single partition stays the first dimension
    tile = nl.load(x)
    nl.store(out, tile[None, :, :])  # error[partition-dimension]: before the 128 partitions
    nl.store(out[0], tile)
    return out, row
