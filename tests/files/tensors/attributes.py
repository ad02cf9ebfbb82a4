# test: check
# args: a=bfloat16[4,128,32]
"""What a tensor and a view of it know of themselves."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    t = nl.ndarray((128, 8, 64), dtype=nl.float32, buffer=nl.sbuf, name="weights")
    assert (t.shape, t.strides, t.offset) == ((128, 8, 64), (512, 64, 1), 0)
    assert (t.ndim, t.size, t.name) == (3, 128 * 512, "weights")
    assert t.dtype == nl.float32 and t.buffer == nl.sbuf and nl.is_sbuf(t.buffer)
    v = t[32:64, 2, 8:40:4]
    assert (v.shape, v.strides, v.offset) == ((32, 8), (512, 4), 32 * 512 + 2 * 64 + 8)
    assert (v.ndim, v.size, v.name) == (2, 256, "weights")
    assert a.buffer == nl.hbm and a.dtype == nl.bfloat16 and nl.is_hbm(a.buffer)
    assert a.strides == (128 * 32, 32, 1) and a.name == "a"
    assert isinstance(t, nl.NkiTensor) and not isinstance(t.shape, nl.NkiTensor)
    assert t.get_pattern() == [[512, 128], [64, 8], [1, 64]]
    assert v.get_pattern() == [[512, 32], [4, 8]]
    assert t.is_contiguous() and not v.is_contiguous() and not t.is_indirect()
    assert t[:, 0].is_contiguous() and t[0:64].is_contiguous()
    assert not t.permute((0, 2, 1)).is_contiguous() and not a[:, 0:64].is_contiguous()
    nisa.memset(dst=t, value=0.0)
    out = nl.ndarray(v.shape, dtype=v.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=v)
    return out
