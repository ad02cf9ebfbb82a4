# test: check
# args: x=float32[1,64]
# nki: beta1
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((128, 64), dtype=x.dtype, buffer=nl.shared_hbm)
    i, j = nl.arange(128)[:, None], nl.arange(64)[None, :]
    row = nl.load(x)
    t = nl.ndarray((nl.par_dim(128), 64), dtype=x.dtype)
    nisa.dma_copy(dst=t[i, j], src=row[i * 0, j])  # error[partition-dimension]: selects one partition 128 times
    nl.store(out, t)
    return out
