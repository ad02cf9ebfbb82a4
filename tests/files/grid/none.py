# test: check
# args: a=float32[128,64]
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):  # warning[NKI0258]: input `a` is never read
    assert (nl.program_ndim(), nl.program_id(0), nl.num_programs()) == (0, 0, 1)
    assert nl.tile_size.pmax == 128 and nl.tile_size.psum_bank_fmax == 512
    assert nl.tile_size.psum_bank_fmax_bytes == 2048 and nl.tile_size.psum_num_banks == 8
    assert nl.tile_size.gemm_stationary_fmax == 128 and nl.tile_size.gemm_moving_fmax == 512
    assert nl.tile_size.sbuf_fmax_bytes == 4 * nl.tile_size.sbuf_fmax
    assert nl.tile_size.sbuf_size_bytes >= 128 * nl.tile_size.sbuf_fmax_bytes
    eye = nl.shared_identity_matrix(64, dtype=nl.bfloat16)
    dst = nl.ndarray((64, 64), nl.float32, buffer=nl.sbuf)
    assert nl.shared_identity_matrix(64, nl.float32, dst=dst).name == dst.name
    out = nl.ndarray((64, 64), nl.float32, buffer=nl.shared_hbm)
    nl.store(out, nl.add(eye, dst))
    return out
