# test: check
# args: a=float32[128,64]
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    def body(i):
        nisa.register_move(i, 3)  # error[register-value]: counter of a loop
        nisa.register_load(i, nl.zeros((1, 1), nl.int32))  # error[register-value]: counter

    nl.fori_loop(0, 4, body)
    return a
