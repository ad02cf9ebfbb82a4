# test: check
# args: a=float32[128,512]
# nki: beta2
"""NKI 0.2 has instructions alone."""
import nki
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.load(a)  # error[needs-profile]: NKI beta2 has no `nki.language.load`: it was added in
    return x
