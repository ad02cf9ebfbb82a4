# test: check
# args: a=float32[128,512]
"""Functions of tensors take no masks either."""
import nki
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.load(a, mask=None)  # error[removed-name]: nl.load: there is no parameter `mask`
    return x
