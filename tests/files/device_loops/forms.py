# test: compile
# args: a=float32[128,64] n=int32[1,1]
# nki: 0.6
"""Every form of a loop on the device, with ints and registers as bounds."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, n):
    x = nl.load(a)
    count = nl.load(n)
    first, last, flag = nisa.register_alloc(0), nisa.register_alloc(), nisa.register_alloc(3)
    nisa.register_load(last, count)
    for i in nl.dynamic_range(4):  # warning[deprecated]: is deprecated
        nisa.tensor_scalar(dst=x, data=x, op0=nl.add, operand0=1)
    for i in nl.dynamic_range(2, 8, 3):
        nisa.tensor_copy(dst=x[:, nl.ds(i, 2)], src=x[:, 0:2])
    for i in nl.dynamic_range(first, last, 2):
        tile = nl.ndarray((128, 1), dtype=a.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile, src=a.ap([[64, 128], [1, 1]], scalar_offset=i, indirect_dim=1))
        nisa.tensor_tensor(dst=x[:, 0:1], data1=x[:, 0:1], data2=tile, op=nl.add)

    def body(i):
        nisa.tensor_scalar(dst=x, data=x, op0=nl.multiply, operand0=0.5)
        for j in nl.static_range(2):  # warning[deprecated]: is deprecated
            nisa.tensor_scalar(dst=x, data=x, op0=nl.add, operand0=j)

        def inner(k):
            nisa.tensor_copy(dst=x[:, nl.ds(k, 1)], src=x[:, nl.ds(i, 1)])

        nl.fori_loop(0, 3, inner)

    nl.fori_loop(0, last, body)
    nl.fori_loop(lower=first, upper=6, body_fun=body, step=2)
    one = nl.full((1, 1), 1, dtype=nl.int32)

    def down(r):
        nisa.tensor_tensor(dst=count, data1=count, data2=one, op=nl.subtract)
        nisa.register_load(r, count)
        return r

    nl.while_loop(last, down)
    while flag:  # warning[deprecated]: is deprecated
        nisa.register_move(flag, 0)
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    nl.store(out, x)
    return out
