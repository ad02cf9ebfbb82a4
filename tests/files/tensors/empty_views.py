# test: check
# args: h=float32[4,128,64]
"""A part of a tensor in HBM may be empty, and is viewed as any other."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(h):
    none = h[nl.ds(4, 0)]
    assert none.shape == h[2:2].shape == h.slice(0, 1, 1).shape == (0, 128, 64)
    assert h[1, 5:5, ::2].shape == (0, 32) and none[:, 7].shape == (0, 64)
    assert none[0:0].shape == none[:].shape == (0, 128, 64)
    assert none.permute((1, 0, 2)).shape == (128, 0, 64)
    assert none.expand_dim(0).broadcast(0, 3).shape == (3, 0, 128, 64)
    assert none.flatten_dims(0, 1).shape == (0, 64)
    assert none.reshape((2, 0, 9)).shape == (2, 0, 9)
    assert none.reshape_dim(0, (-1, 2)).shape == (0, 2, 128, 64)
    assert h[0, :, 3:3].view(nl.bfloat16).shape == (128, 0)
    assert none.ap([[64, 128], [1, 64]], offset=-3 * 8192).shape == (128, 64)
    out = nl.ndarray(h.shape, dtype=h.dtype, buffer=nl.shared_hbm)
    for row in range(none.shape[0]):
        nisa.dma_copy(dst=out[row], src=none[row])
    nisa.dma_copy(dst=out, src=h)
    return out
