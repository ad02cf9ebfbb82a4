# test: check
# args: a=float32[6,128,40]
"""Every view that reorders, repeats, splits or merges dimensions."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    t = nl.ndarray((128, 4, 6), dtype=nl.float32, buffer=nl.sbuf)
    one = nl.ndarray((128, 1, 6), dtype=nl.float32, buffer=nl.sbuf)
    assert t.slice(1, 1, 4).shape == (128, 3, 6) and t.slice(2, 0, 6, 2).strides == (24, 6, 2)
    assert t.slice(dim=0, start=0, end=64).slice(dim=1, start=0, end=4, step=2).shape == (64, 2, 6)
    assert t.select(1, 3).shape == (128, 6) and t.select(0, 5).shape == (1, 4, 6)
    assert a.select(0, 3).shape == (128, 40) and a.select(2, 0).strides == (5120, 40)
    assert t.permute((0, 2, 1)).strides == (24, 1, 6) and a.permute([2, 0, 1]).shape == (40, 6, 128)
    assert one.broadcast(1, 8).shape == (128, 8, 6) and one.broadcast(1, 8).strides == (6, 0, 1)
    assert t.expand_dim(1).shape == (128, 1, 4, 6) and t.expand_dim(3).shape == (128, 4, 6, 1)
    assert a.expand_dim(0).shape == (1, 6, 128, 40)
    assert one.squeeze_dim(1).shape == (128, 6)
    assert t.reshape((128, 24)).shape == (128, 24) and t.reshape((128, 2, 12)).ndim == 3
    assert t[:, 0:2].reshape((128, 3, 4)).shape == (128, 3, 4)
    assert a.reshape((6 * 128 * 40,)).shape == (30720,)
    assert t.reshape_dim(2, (2, 3)).shape == (128, 4, 2, 3)
    assert t.reshape_dim(1, (2, -1)).shape == (128, 2, 2, 6) and t.reshape_dim(0, (128,)).ndim == 3
    assert t.flatten_dims(1, 2).shape == (128, 24) and a.flatten_dims(0, 1).shape == (768, 40)
    r = t.reshape((128, 24)).rearrange(("p", ("a", "b")), ("p", "b", "a"), {"a": 4})
    assert (r.shape, r.strides) == ((128, 6, 4), (24, 1, 6))
    merged = a.rearrange((("x", "y"), "p", "f"), ("p", ("x", "y"), "f"), fixed_sizes={"y": 3})
    assert merged.shape == (128, 6, 40)
    assert t.view(nl.uint8).shape == (128, 4, 24) and t.view(nl.int32).shape == t.shape
    assert t.view(nl.uint8).view(nl.float32).strides == t.strides
    assert t.reinterpret_cast(nl.bfloat16).shape == (128, 4, 12)
    assert t.view(nl.uint8)[:, 0, 0:1].base_tensor.shape == t.base_tensor.shape == (128, 4, 6)
    assert t.view(nl.uint8).base_tensor.dtype == nl.float32
    u = t[0:64, :, :].permute((0, 2, 1))[:, 0, :]
    assert (u.shape, u.strides) == ((64, 4), (24, 6))
    nisa.memset(dst=t, value=0.0)
    nisa.memset(dst=one, value=0.0)
    out = nl.ndarray((128, 24), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=t)
    return out
