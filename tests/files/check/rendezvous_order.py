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
    if core == 0:
        nisa.core_barrier(out, (0, 1))  # error[core-meeting]: core 0 reaches core_barrier here, but core 1 reaches sendrecv
        nisa.sendrecv(t, r, other, other, 0)
    else:
        nisa.sendrecv(t, r, other, other, 0)
        nisa.core_barrier(out, (0, 1))
    nisa.dma_copy(dst=out[core * 128 : core * 128 + 128, :], src=r)
    return out
