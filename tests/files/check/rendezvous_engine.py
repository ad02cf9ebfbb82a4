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
    nisa.tensor_copy(r, t)
    nisa.core_barrier(out, (0, 1), engine=nisa.engine.sync if core else nisa.engine.vector)  # error[core-meeting]: runs on the vector engine on core 0 and on the sync engine on core 1
    nisa.dma_copy(dst=out[core * 128 : core * 128 + 128, :], src=r)
    return out
