# test: check
# args: h=float32[4,128,64]
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(h):
    t = nl.ndarray((64, 16, 32), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=t, value=0.0)
    reg = nisa.register_alloc(1)
    t[64]  # error[index-out-of-bounds]: index 64 is outside dimension 0 of size 64
    t[:, -17]  # error[index-out-of-bounds]: index -17
    t[:, 0:17]  # error[index-out-of-bounds]: slice 0:17
    t[:, 4:4]  # error[empty-slice]: 4:4
    t[:, ::-1]  # error[bad-index]: a step of at least 1
    t[::2]  # error[partition-dimension]: a step of 2 would skip partitions
    t[0, 0, 0, 0]  # error[too-many-indices]: 4 indices for 3 dimensions
    t[..., ...]  # error[bad-index]: at most one `...`
    t[:, 1.0]  # error[bad-index]: indexed by 1.0
    t[:, True]  # error[bad-index]: indexed by True
    t[:, None]  # error[bad-index]: None in an index does not add a dimension
    t[:, range(4)]  # error[bad-index]: indexed by range(0, 4)
    t[:, t]  # error[bad-index]: dimension 1 cannot be indexed by NkiTensor(t: float32[64, 16, 32]
    t[:, nl.ds(10, 7)]  # error[index-out-of-bounds]: slice 10:17
    t[reg]  # error[partition-dimension]: chosen at run time
    t[:, 0:reg]  # error[register-value]: VirtualRegister
    h[:, reg, reg]  # error[indirect-view]: a view can have at most one run-time index
    return h
