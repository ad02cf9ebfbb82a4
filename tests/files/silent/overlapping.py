# test: compile
# args: a=float32[128,64]
"""A source may be the destination, but not overlap it otherwise."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=a)
    # warning@+1[NKI0348]: tensor_copy: `src` and `dst` overlap in `t`
    nisa.tensor_copy(dst=t[:, 1:64], src=t[:, 0:63])
    # warning@+1[NKI0348]: overlap in `t`, but are not the same elements in the same order
    nisa.tensor_copy(dst=t[:, 0:63], src=t[:, 1:64])
    # warning@+1[NKI0348]: tensor_scalar: `data` and `dst` overlap in `t`
    nisa.tensor_scalar(dst=t[:, 8:40], data=t[:, 0:32], op0=nl.add, operand0=1.0)
    # warning@+1[NKI0348]: tensor_tensor: `data2` and `dst` overlap in `t`
    nisa.tensor_tensor(dst=t[:, 0:32], data1=t[:, 0:32], data2=t[:, 31:63], op=nl.add)
    # The same elements, other elements, elements between them, and other partitions.
    nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)
    nisa.tensor_tensor(dst=t[:, 0:32], data1=t[:, 0:32], data2=t[:, 32:64], op=nl.add)
    nisa.tensor_copy(dst=t[:, 0:64:2], src=t[:, 1:64:2])
    nisa.tensor_copy(dst=t[0:64, 1:64], src=t[64:128, 0:63])
    # A number for each partition, and a reduction.
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=t[:, 5:6])
    nisa.tensor_reduce(dst=t[:, 0:1], op=nl.add, data=t, axis=1)
    s = nl.ndarray((129, 64), dtype=a.dtype, buffer=nl.hbm)
    nisa.dma_copy(dst=s[0:128], src=t)
    # warning@+1[NKI0348]: dma_copy: `src` and `dst` overlap in `s`
    nisa.dma_copy(dst=s[1:129], src=s[0:128])
    nisa.dma_copy(dst=s[0:64], src=s[64:128])
    nisa.dma_copy(dst=t, src=s[1:129])
    nisa.dma_copy(dst=out, src=t)
    return out
