# /// nkic
# nki = "beta2"
# [args]
# a = "float32[128, 512]"
# ///
# unproven: nkic does not have
"""Parameters that are gone, and that nkic has in no version."""

import nki
import nki.isa as nisa
import nki.language as nl
import nki.collectives as ncc


@nki.jit(platform_target="trn2", debug_kernel=True)
def kernel(a, op=nl.add):
    x = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    nisa.dma_copy(dst=x, src=a, dst_rmw_op=nl.add, unique_indices=True)
    nisa.dma_copy(x, a, dst_rmw_op=None, unique_indices=False)
    nisa.dma_copy(x, a, dst_rmw_op=op)  # left: `dst_rmw_op` of nisa.dma_copy was removed in NKI 0.3
    register = nisa.register_alloc()
    nisa.register_move(register, imm=42)
    nisa.register_move(dst=register, imm=2 * 21)
    nisa.tensor_copy(x, x, mask=None)  # left: no parameter `mask`
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=x)
    return out


def exchange(x, y, group, is_gpsimd):
    nisa.sendrecv(src=x, dst=y, send_to_rank=1, recv_from_rank=1, pipe_id=0, use_gpsimd_dma=True)
    nisa.sendrecv(x, y, 1, 1, 0, use_gpsimd_dma=False)
    nisa.sendrecv(x, y, 1, 1, 0, use_gpsimd_dma=is_gpsimd)
    ncc.collective_permute_implicit_current_processing_rank_id(
        iteration_id=0, channel_id=0, num_channels=2, replica_group=group
    )
