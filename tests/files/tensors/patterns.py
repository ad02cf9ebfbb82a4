# test: check
# args: a=float32[64,128] i=int32[16,1] w=int32[1,1]
"""`ap` with every parameter, run-time offsets, gathers."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a, i, w):
    t = nl.ndarray((128, 32), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=t, value=0.0)
    assert t.ap(pattern=[[32, 128], [1, 32]]).shape == (128, 32)
    assert t.ap([(32, 64), (2, 16)], offset=1).offset == 1
    assert t.ap([[32, 4], [8, 4], [1, 8]]).shape == (4, 4, 8)
    assert t.ap([[32, 128], [0, 3], [1, 2]]).strides == (32, 0, 1)
    halves = t.ap(pattern=[[64, 128], [1, 64]], dtype=nl.bfloat16)
    assert (halves.shape, halves.dtype) == ((128, 64), nl.bfloat16)
    own = t[0:64].get_pattern()
    own[0][1] = 32
    assert t.ap(own).shape == (32, 32)
    inner = t.ap(pattern=[[32, 128], [2, 16]])
    assert inner.ap(pattern=[[32, 128], [1, 8]]).strides == (32, 1)
    assert a.ap([[1, 128], [128, 64]]).shape == (128, 64)

    rows, where = nl.load(i), nl.load(w)
    reg = nisa.register_alloc()
    nisa.register_load(reg, where)
    gathered = nl.ndarray((16, 128), dtype=nl.float32, buffer=nl.sbuf)
    picked = a.vector_select(0, rows)
    assert picked.shape == (16, 128) and picked.is_indirect() and not a.is_indirect()
    nisa.dma_copy(dst=gathered, src=picked)
    nisa.dma_copy(dst=gathered, src=a.ap([[128, 16], [1, 128]], vector_offset=rows, indirect_dim=0))
    nisa.dma_copy(dst=gathered[0:1], src=a.select(0, where).expand_dim(0))
    nisa.dma_copy(dst=gathered[0:1], src=a[reg].expand_dim(0))
    column = a.ap([[128, 64], [1, 1]], scalar_offset=reg, indirect_dim=1)
    assert column.is_indirect() and column.shape == (64, 1)
    nisa.dma_copy(dst=t[0:64, 0:1], src=column)
    # warning@+1[NKI0531]: tensor_copy writes `t`, which nothing reads
    nisa.tensor_copy(dst=t[:, nl.ds(reg, 4)], src=t[:, 0:4])
    out = nl.ndarray((16, 128), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=gathered)
    return out
