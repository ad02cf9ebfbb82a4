# test: check
# args: a=float32[256,64]
# lnc: 2
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    core, other = nl.program_id(0), 1 - nl.program_id(0)
    mine = nl.ds(core * 128, 128)
    out = nl.ndarray((256, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    both = nl.ndarray((256, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    late = nl.ndarray((256, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    same = nl.ndarray((256, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    own = nl.ndarray((256, 64), dtype=nl.float32, buffer=nl.shared_hbm)
    t = nl.ndarray((128, 64), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=a[mine, :])
    nisa.dma_copy(dst=both[0:128, :], src=t)
    nisa.dma_copy(dst=both[mine, :], src=t)  # warning[core-race]: core 0 writes `both` while core 1 writes it
    nisa.dma_copy(dst=same, src=a)  # warning[core-race]: core 1 writes `same` while core 0 writes it
    nisa.dma_copy(dst=late[mine, :], src=t)
    nisa.dma_copy(dst=own[mine, 0:32], src=t[:, 0:32])
    nisa.dma_copy(dst=own[mine, 32:64], src=t[:, 32:64])
    nisa.core_barrier(late, (0, 1))
    nisa.dma_copy(dst=t, src=late[nl.ds(other * 128, 128), :])
    nisa.dma_copy(dst=late[mine, :], src=t)  # warning[core-race]: core 0 writes `late` while core 1 reads it
    nisa.dma_copy(dst=t, src=own[mine, :])
    nisa.dma_copy(dst=out[mine, :], src=t)
    return out, both, late, own, same
