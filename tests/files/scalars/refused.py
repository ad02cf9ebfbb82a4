# test: check
# args: a=float32[128,64] n=int32[1,1] u=uint32[1,1]
# nki: 0.7
"""What scalars do not have, each at its place."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, n, u):
    i = nisa.scalar_load(nl.load(n))
    nisa.scalar_load(nl.load(u))  # error[dtype-not-supported]: `src` is uint32, but a scalar is
    nisa.scalar_load(a[0:1, 0:2])  # error[operand-shape]: `src` has 2 elements, but must have 1
    nisa.scalar_store(n, 3)  # error[argument-kind]: `value` is 3, but must be a scalar
    nisa.scalar_store(n, nisa.register_alloc(3))  # error[argument-kind]: `value` is a register
    nisa.register_move(i, 3)  # error[register-value]: the counter of a loop or a scalar
    return a
