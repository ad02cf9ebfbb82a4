# test: compile
# args: a=float32[128,64]
"""What an instruction writes is read."""
import nki
import nki.isa as nisa
import nki.language as nl


def scaled(t, factor, keep=True):
    """Makes two results; not every caller reads the second."""
    half = nl.ndarray(t.shape, dtype=t.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=half, data=t, op0=nl.multiply, operand0=factor / 2)
    whole = nl.ndarray(t.shape, dtype=t.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=whole, data=t, op0=nl.multiply, operand0=factor)
    return whole, half


@nki.jit
def kernel(a):
    out = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=a)
    v = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    # warning@+1[NKI0531]: activation writes `v`, which nothing reads
    nisa.activation(dst=v, op=nl.exp, data=t)
    u = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
    # warning@+1[NKI0531]: tensor_copy writes `u`, which tensor_scalar overwrites before anything
    nisa.tensor_copy(dst=u, src=t)
    nisa.tensor_scalar(dst=u, data=t, op0=nl.add, operand0=1.0)
    # The unread half of the second call does not count.
    first, half = scaled(u, 2.0)
    nisa.tensor_tensor(dst=first, data1=first, data2=half, op=nl.add)
    u, _ = scaled(first, 3.0)
    # Cleared, and written in part.
    w = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
    nisa.memset(w, value=0.0)
    nisa.tensor_copy(dst=w, src=u)
    nisa.tensor_copy(dst=w[:, 0:32], src=t[:, 0:32])
    # One of two results.
    total = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    rest = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation_reduce(
        dst=rest, op=nl.copy, data=t, reduce_op=nl.add, reduce_res=total
    )
    nisa.tensor_scalar(dst=w, data=w, op0=nl.multiply, operand0=total)

    # Read in the next iteration; what is written in the last one is not.
    def body(i):
        nisa.tensor_tensor(dst=w, data1=w, data2=t, op=nl.add)
        nisa.tensor_scalar(dst=t, data=w, op0=nl.multiply, operand0=0.5)

    nl.fori_loop(0, 3, body)
    nisa.dma_copy(dst=out, src=w)
    s = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.hbm)
    # warning@+1[NKI0531]: dma_copy writes `s`, which nothing reads
    nisa.dma_copy(dst=s, src=w)
    # Cleared by a transfer of a constant tile, and written after it.
    zeros = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.sbuf)
    nisa.memset(zeros, value=0.0)
    cleared = nl.ndarray((128, 64), dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=cleared, src=zeros)
    nisa.dma_copy(dst=cleared, src=w)
    # A store that another one overwrites; one in part, and one after a read.
    again = nl.ndarray((3, 128, 64), dtype=a.dtype, buffer=nl.shared_hbm)
    # warning@+1[NKI0531]: dma_copy writes `again`, which dma_copy overwrites before
    nisa.dma_copy(dst=again[0], src=w)
    nisa.dma_copy(dst=again[0], src=t)
    nisa.dma_copy(dst=again[1], src=w)
    nisa.dma_copy(dst=again[1, :, 0:32], src=t[:, 0:32])
    nisa.dma_copy(dst=again[2], src=w)
    nisa.dma_copy(dst=t, src=again[2])
    nisa.dma_copy(dst=again[2], src=t)
    return out, again, cleared
