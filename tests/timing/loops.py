# /// nkic
# [args]
# a = "float32[128, 8192]"
# b = "float32[128, 512]"
# ///
"""Loops on the device, for the table of schedules: turns overlap as far as their tiles let them."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def loop_over_columns(a, b):
    """Load, exponential, store: a turn waits for the tiles of the one before."""
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)

    def body(i):
        x = nl.load(a[:, nl.ds(i, 512)])
        nl.store(out[:, nl.ds(i, 512)], nl.exp(x))

    nl.fori_loop(0, 8192, body, step=512)
    return out


@nki.jit
def loop_over_products(a, b):
    """A product of 128 columns each turn: load, matmul, copy, store."""
    held = nl.load(b[:, 0:128])
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)

    def body(i):
        moving = nl.load(a[:, nl.ds(i, 512)])
        product = nl.ndarray((128, 512), a.dtype, buffer=nl.psum)
        nisa.nc_matmul(dst=product, stationary=held, moving=moving)
        result = nl.ndarray((128, 512), a.dtype, buffer=nl.sbuf)
        nisa.tensor_copy(dst=result, src=product)
        nl.store(out[:, nl.ds(i, 512)], result)

    nl.fori_loop(0, 8192, body, step=512)
    return out


@nki.jit
def loop_that_carries(a, b):
    """A running sum on chip, by one engine: nothing waits for anybody else."""
    total = nl.load(b)

    def body(i):
        nisa.tensor_tensor(dst=total, data1=total, data2=total, op=nl.multiply)

    nl.fori_loop(0, 64, body)
    out = nl.ndarray(b.shape, b.dtype, buffer=nl.shared_hbm)
    nl.store(out, total)
    return out


@nki.jit
def loop_over_rows(a, b):
    """Each turn works on four tiles by two engines: what the next one loads wants the queues on
    which this one stores.
    """
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)

    def body(i):
        for j in range(4):
            x = nl.load(a[:, nl.ds(i + 128 * j, 128)])
            y = nl.load(b[:, 128 * j : 128 * j + 128])
            total = nl.add(nl.exp(x), y)
            nl.store(out[:, nl.ds(i + 128 * j, 128)], nl.multiply(total, x))

    nl.fori_loop(0, 8192, body, step=512)
    return out
