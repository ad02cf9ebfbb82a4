# test: check
# args: a=float32[256,64]
# lnc: 2
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    core, other = nl.program_id(0), 1 - nl.program_id(0)
    out = nl.ndarray((256, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    r = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=a[core * 128 : core * 128 + 128, :])
    n = 32 if core == 0 else 64
    nisa.memset(r, 0.0)
    nisa.sendrecv(t[:, :n], r[:, :n], other, other, 0)  # error[core-meeting]: core 0 sends float32[128, 32] in sbuf and core 1 float32[128, 64] in sbuf
    nisa.dma_copy(dst=out[core * 128 : core * 128 + 128, :], src=r)
    return out
