# test: check
# args: a=float32[128,2,4,8]
"""What is said of frequent mistakes: one complaint each, at the argument."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.ndarray((128, 2, 4, 8), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    flat = x.reshape((128, 64))
    y = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    row = nl.ndarray((1, 64), dtype=nl.float32, buffer=nl.sbuf)
    # error@+1[NKI0308]: `axis` is 0, and axis 0 is the partition dimension
    nisa.tensor_reduce(dst=row, op=nl.add, data=flat, axis=0)
    # error@+1[NKI0405]: `dst` is float32 and `data` is float32
    nisa.tensor_scalar(dst=y, data=flat, op0=nl.bitwise_and, operand0=1)
    # error@+1[NKI0290]: tensor_tensor: `op` is nl.divide, which is not an operator of any engine
    nisa.tensor_tensor(dst=y, data1=flat, data2=flat, op=nl.divide)
    # error@+1[NKI0401]: `indices` is float32, but must be uint32
    nisa.nc_n_gather(dst=y, data=flat, indices=flat)
    top = nl.ndarray((128, 2, 4), dtype=nl.float32, buffer=nl.sbuf)
    # error@+2[NKI0304]: `dst` has 3 dimensions [128, 2, 4]; at most 2 are allowed
    # error@+1[NKI0304]: `src` has 4 dimensions [128, 2, 4, 8]; at most 3 are allowed
    nisa.max8(dst=top, src=x)
    places = nl.ndarray((128, 8), dtype=nl.uint32, buffer=nl.sbuf)
    values = nl.ndarray((128, 8), dtype=nl.float32, buffer=nl.sbuf)
    nisa.max8(dst=values, src=flat)
    # error@+1[NKI0304]: `data` has 4 dimensions
    nisa.nc_find_index8(dst=places, data=x, vals=values)
    tf = nl.ndarray((128, 64), dtype=nl.tfloat32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=tf, src=flat)
    # error@+1[NKI0401]: `src` is tfloat32, but must be one of bfloat16
    nisa.tensor_scalar_cumulative(dst=y, src=tf, op0=nl.add, op1=nl.add, imm0=0.0)
    nisa.dropout(dst=y, data=flat, prob=1.0)
    nisa.dropout(dst=y, data=flat, prob=2.0)  # error[NKI0614]: `prob` is 2.0, but a probability
    newer = nl.ndarray((128, 64), dtype=nl.float8_e4m3fn, buffer=nl.sbuf)
    nisa.dma_copy(dst=newer, src=flat)  # error[NKI0403]: `dst` is float8_e4m3fn, which needs trn3
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=y)
    return out
