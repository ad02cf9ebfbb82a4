# test: compile
# args: a=float32[128,64] b=int32[128,1]
"""Which of two values an element keeps is not defined."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, b):
    out = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=a)
    u = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
    nisa.memset(u, value=0.0)
    # warning@+1[NKI0347]: tensor_copy: `dst` writes 64 elements to 1 place of each partition of `u`
    nisa.tensor_copy(dst=u.ap(pattern=[[64, 128], [0, 64]]), src=t)
    nisa.tensor_tensor(dst=t, data1=t, data2=u, op=nl.add)
    # warning@+1[NKI0347]: `dst` writes 16 elements to 13 places of each partition
    nisa.tensor_copy(dst=u.ap(pattern=[[64, 128], [3, 4], [1, 4]]), src=t[:, 0:16])
    nisa.tensor_tensor(dst=t, data1=t, data2=u, op=nl.add)
    # Each element once, although the steps suggest otherwise.
    nisa.tensor_copy(dst=u.ap(pattern=[[64, 128], [2, 3], [3, 2]]), src=t[:, 0:6])
    nisa.tensor_tensor(dst=t, data1=t, data2=u, op=nl.add)
    nisa.tensor_copy(dst=u.ap(pattern=[[64, 128], [1, 4], [4, 16]]), src=t)
    nisa.tensor_tensor(dst=t, data1=t, data2=u, op=nl.add)
    # Constants, and copies of one element that are all the same.
    nisa.memset(u.ap(pattern=[[64, 128], [0, 64]]), value=1.0)
    nisa.tensor_copy(
        dst=u.ap(pattern=[[64, 128], [0, 8], [1, 8]]),
        src=t.ap(pattern=[[64, 128], [0, 8], [1, 8]]),
    )
    nisa.tensor_tensor(dst=t, data1=t, data2=u, op=nl.add)
    # A first result that only makes room for the second.
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation_reduce(
        dst=u.ap(pattern=[[64, 128], [0, 64]]), op=nl.exp, data=t, reduce_op=nl.add,
        reduce_res=total,
    )
    nisa.tensor_scalar(dst=u, data=u, op0=nl.multiply, operand0=total)
    nisa.dma_copy(dst=out, src=u)
    # warning@+1[NKI0347]: dma_copy: `dst` writes 8,192 elements to 4,128 places of `out`
    nisa.dma_copy(dst=out.ap(pattern=[[32, 128], [1, 64]]), src=t)
    index = nl.ndarray((128, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=index, src=b)
    rows = out.ap(pattern=[[64, 128], [1, 64]], vector_offset=index, indirect_dim=0)
    nisa.dma_copy(dst=rows, src=t)  # a run tells
    return out
