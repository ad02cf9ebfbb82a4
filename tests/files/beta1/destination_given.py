# test: check
# args: x=float32[32,32]
# nki: beta1
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(x):
    out = nl.ndarray((32, 32), dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((nl.par_dim(32), 32), dtype=x.dtype)
    nisa.nc_transpose(t, nl.load(x), engine=nisa.vector_engine)  # error[wrong-call]: nisa.nc_transpose: too many positional arguments
    nl.store(out, t)
    return out
