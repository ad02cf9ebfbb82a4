# test: compile
"""A fixed address in PSUM is the start of a bank."""
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel():
    good = nl.ndarray((128, 256), dtype=nl.float32, buffer=nl.psum, address=(0, 4096))
    # error@+1[NKI0503]: `bad` at address (0, 1024) starts inside a bank of PSUM
    bad = nl.ndarray((128, 256), dtype=nl.float32, buffer=nl.psum, address=(0, 1024))
    nisa.memset(dst=good, value=1.0)
    nisa.memset(dst=bad, value=1.0)
    y = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(dst=y[:, 0:256], src=good)
    nisa.tensor_copy(dst=y[:, 256:512], src=bad)
    out = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=y)
    return out
