# test: check
# args: a=float32[128,512]
"""A decorator that is nearly nki.jit."""
import nki


@nki.jti  # error[unknown-attribute]: `nki` has no `jti`
def kernel(a):
    return a
