# test: check
# args: a=float32[128,64]
import nki
import nki.isa as nisa


@nki.jit
def kernel(a):
    # The explanation of the error asks for the name once more, which is not reported.
    # warning@+2[deprecated]: `nki.isa.vector_engine` is deprecated
    # error@+1[wrong-type]: 'engine' object is not callable
    nisa.vector_engine()
    return a
