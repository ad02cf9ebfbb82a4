# test: check
# args: a=float32[128,64]
import nki
import nki.isa as nisa
import nki.language as nl


def body(i):
    nisa.register_alloc(1)


@nki.jit
def kernel(a):
    with nl.no_reorder():
        nl.fori_loop(0, 4, body)  # error[loop-in-no-reorder]: cannot be inside nl.no_reorder()
    return a
