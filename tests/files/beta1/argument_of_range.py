# test: check
# args: a=float32[128,64]
# nki: beta1
import neuronxcc.nki as nki
import neuronxcc.nki.compiler as ncc
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a):
    t = nl.load(a)
    for _ in nl.sequential_range(2, directives=ncc.no_reorder()):
        t[...] = nl.add(t, t)
    for _ in nl.affine_range(2, unroll=4):  # error[wrong-call]: nl.affine_range: there is no parameter `unroll`
        t[...] = nl.add(t, t)
    return t
