# test: check
# args: a=float32[128,64]
# nki: beta1
"""Beta 1 has no `nki`."""
import nki  # error[needs-profile]: NKI beta1 has no `nki`
import nki.language as nl  # error[needs-profile]: `nki` was added in NKI beta2


@nki.jit
def kernel(a):
    return nl.copy(a)
