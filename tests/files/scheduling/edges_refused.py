# test: check
# args: a=float32[128,64]
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.load(a)
    y = nl.ndarray(a.shape, a.dtype, buffer=nl.sbuf)
    nisa.reciprocal(dst=y, data=x, name="recip")  # error[bad-schedule]: cannot wait for `plus`
    for _ in range(2):
        nisa.activation(dst=x, data=x, op=nl.exp, name="twice")  # error[bad-schedule]: the name of 2
    nisa.tensor_scalar(dst=x, data=x, op0=nl.add, operand0=1, name="plus")
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.add(x, y))
    return out


kernel = kernel.with_schedule([  # error[bad-schedule]: `reciprocal`, but no instruction has that
    ("recip", "plus"),
    ("plus", ["recip", "twice", "reciprocal"]),
])
