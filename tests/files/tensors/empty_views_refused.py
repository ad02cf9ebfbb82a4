# test: check
# args: h=float32[4,128,64]
"""What no elements are there for."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(h):
    none = h[2:2]
    t = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    rows = nl.ndarray((128, 1), dtype=nl.uint32, buffer=nl.sbuf)
    nisa.memset(dst=rows, value=0)
    reg = nisa.register_alloc(0)
    nisa.dma_copy(dst=t, src=none)  # error[empty-slice]: `src` is an empty part of h; its shape is (0, 128, 64)
    nisa.dma_copy(dst=h[0, :, 9:9], src=t)  # error[empty-slice]: `dst` is an empty part of h
    none[0]  # error[empty-slice]: dimension 0 is empty
    nisa.dma_copy(dst=t, src=none[reg])  # error[empty-slice]: dimension 0 is empty
    none.select(0, reg)  # error[empty-slice]: dimension 0 is empty
    none.vector_select(0, rows)  # error[empty-slice]: dimension 0 is empty
    none.ap([[64, 128], [1, 64]], vector_offset=rows)  # error[empty-slice]: dimension 0 is empty
    none[0:1]  # error[index-out-of-bounds]: slice 0:1
    nisa.dma_copy(dst=t, src=none[:, 200])  # error[index-out-of-bounds]: index 200
    h[3:2]  # error[empty-slice]: 3:2
    h.reshape((0, 64))  # error[bad-shape]: ints of at least 1
    none.reshape((4, 64))  # error[reshape-size]: from 0 to 256
    t[:, 4:4]  # error[empty-slice]: 4:4
    return h
