# test: check
# args: a=float32[128,64]
# grid: 2
import nki
import nki.language as nl


@nki.jit
def kernel(a):
    nl.program_id(1)  # error[bad-grid-axis]: axes 0 to 0, not 1
    return a
