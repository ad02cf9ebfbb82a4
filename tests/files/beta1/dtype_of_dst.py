# test: check
# args: a=float32[128,64]
# nki: beta1
import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a):
    t = nl.load(a)
    nisa.nc_stream_shuffle(t, t, list(range(32)), dtype=nl.float32)
    nisa.nc_stream_shuffle(t, t, list(range(32)), dtype=nl.bfloat16)  # error[argument-kind]: the results go into dst, which is float32, and cannot be bfloat16
    return t
