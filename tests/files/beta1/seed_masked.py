# test: check
# args: a=float32[128,64]
# nki: beta1
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a):
    t = nl.load(a)
    i = nl.arange(128)[:, None]
    nl.random_seed(t[i, 0], mask=i < 64)  # error[argument-kind]: nl.random_seed: a mask cannot leave generators as they are
    return t
