# test: check
# args: a=float32[128,512]
"""What is wrong with a call of nl.ndarray is said at the argument."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=a)
    nl.ndarray(
        (200, 4),  # error[too-many-partitions]: 4) needs 200
        nl.float32,
    )
    nl.ndarray(
        (128, 4),
        dtype="flaot32",  # error[unknown-dtype]: 'flaot32' is not a dtype
        buffer=nl.sbuf,
    )
    return out
