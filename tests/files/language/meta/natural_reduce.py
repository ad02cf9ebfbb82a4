# test: check
# args: a=float32[128,64]
"""An iterator that has nothing left says so, and what gives a default."""
import nki


@nki.jit
def kernel(a):
    sizes = [n for n in a.shape if n > 1000]
    return next(iter(sizes))  # error[wrong-value]: `next` was called when no elements were left
