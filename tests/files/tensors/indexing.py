# test: check
# args: h=float32[4,128,64]
"""Int indices drop dimensions, but on chip never the partitions, nor the second to last one."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(h):  # warning[NKI0259]: nothing reads [0:1, 0:64, 32:64]
    t = nl.ndarray((64, 16, 32), dtype=nl.float32, buffer=nl.sbuf)
    assert t[0, 0, 10].shape == (1, 1)
    assert t[:, 0].shape == (64, 32) and t[:, 0, 10].shape == (64, 1)
    assert t[0:64, 0, 0:8].shape == (64, 8) and t[:, :, ::2].shape == (64, 16, 16)
    assert t[...].shape == t.shape == t[:, ...].shape and t[0, ..., :].shape == (1, 16, 32)
    assert t[-1].offset == 63 * 512 and t[:, -2, -4:-1].shape == (64, 3)
    assert t[8:24][4:8].offset == 12 * 512
    assert t[:, nl.ds(3, 5), 1:2].shape == (64, 5, 1)
    assert t[nl.ds(8, 32), 0, nl.ds(0, 4)].shape == (32, 4)
    assert h[0].shape == (128, 64) and h[0, 5].shape == (64,) and h[0, 5, 3].shape == (1,)
    assert h[:, 1, 0:2].shape == (4, 2) and h[1, :, ::-1 * -2].shape == (128, 32)
    psum = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.psum)
    assert psum[3].shape == (1, 512) and psum[:, 3].shape == (128, 1)
    nisa.memset(dst=psum, value=0.0)
    nisa.memset(dst=t, value=1.0)
    nisa.dma_copy(dst=t[:, :, :], src=h[0, 0:64, 0:32].expand_dim(1).broadcast(1, 16))
    out = nl.ndarray((64, 32), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.tensor_copy(dst=psum[0:64, 0:32], src=t[:, 3])
    nisa.tensor_copy(dst=t[:, 0], src=psum[0:64, 0:32])
    nisa.dma_copy(dst=out, src=t[:, 0])
    return out
