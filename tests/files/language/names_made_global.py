# test: check
# args: a=float32[4,4]
"""A function may define a name of the module, as in Python."""
import nki
import nki.isa as nisa
import nki.language as nl

count = 0


def step():
    global count, last
    count += 1
    last = count


@nki.jit
def copy(a):
    step()
    step()
    assert (count, last) == (2, 2)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=a)
    return out
