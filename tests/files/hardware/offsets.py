# test: check
# args: a=float32[128,64] places=int32[128,1]
"""Run-time offsets: integers, in SBUF, as many as there are rows; the argument is shown."""
import nki
import nki.isa as nisa
import nki.language as nl

ROWS = [[64, 128], [1, 64]]


@nki.jit
def kernel(a, places):
    out = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    y = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    index = nl.ndarray((128, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=index, src=places)
    nisa.dma_copy(dst=y, src=a.ap(ROWS, vector_offset=index, indirect_dim=0))
    nisa.dma_copy(dst=y[0:32], src=a.ap([[64, 32], [1, 64]], scalar_offset=index[0:1, 0:1]))

    real = nl.ndarray((128, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=real, value=1.0)
    nisa.dma_copy(
        dst=y,
        src=a.ap(
            ROWS,
            vector_offset=real,  # error[NKI0401]: `vector_offset` of `src` is float32, but must be
            indirect_dim=0,
        ),
    )
    nisa.dma_copy(
        dst=y[0:32],
        src=a.ap(
            [[64, 32], [1, 64]],
            scalar_offset=real[0:1, 0:1],  # error[NKI0401]: `scalar_offset` of `src` is float32
        ),
    )
    in_psum = nl.ndarray((128, 1), dtype=nl.int32, buffer=nl.psum)
    nisa.memset(dst=in_psum, value=1)
    nisa.dma_copy(
        dst=y,
        src=a.ap(
            ROWS,
            vector_offset=in_psum,  # error[NKI0601]: `vector_offset` of `src` is in psum, but must
            indirect_dim=0,
        ),
    )
    nisa.dma_copy(
        dst=y,
        src=a.ap(
            ROWS,
            vector_offset=places,  # error[NKI0601]: `vector_offset` of `src` is in shared_hbm, but
            indirect_dim=0,
        ),
    )
    reg = nisa.register_alloc()
    nisa.register_load(reg, real[0:1, 0:1])  # error[NKI0401]: `src` is float32, but a register
    nisa.dma_copy(dst=out, src=y)
    return out
