# test: check
# args: a=float32[128,512]
"""An index expression is affine."""
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a):
    i_p = nl.arange(128)[:, None]
    i_f = nl.arange(512)[None, :]
    return nl.load(a[i_p, i_f // 3])  # error[bad-index]: an affine expression: its steps are not
