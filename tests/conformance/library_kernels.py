"""Kernels that call functions of nki-library that are not kernels.

`mlp` replaces the launch of the same name, whose published file does not parse: the end of its
docstring occurs twice.
"""

import nki
import nki.isa as nisa
import nki.language as nl
from nkilib_src.nkilib.core.attention.attention_tkg import attention_tkg
from nkilib_src.nkilib.core.mlp.mlp_cte.mlp_cte import mlp_cte
from nkilib_src.nkilib.core.mlp.mlp_parameters import MLPParameters
from nkilib_src.nkilib.core.mlp.mlp_tkg.mlp_tkg import mlp_tkg
from nkilib_src.nkilib.core.utils.allocator import SbufManager
from nkilib_src.nkilib.core.utils.logging import Logger


@nki.jit
def attend(q, k_active, v_active, k_prior, v_prior, mask, cfg):
    """Return (batch, heads, d, active), computed from queries and keys of (d, all others)."""
    out = nl.ndarray((cfg.bs, cfg.q_head, cfg.d_head, cfg.s_active), q.dtype, nl.shared_hbm)
    manager = SbufManager(0, 190 * 1024, Logger("attend"))
    manager.open_scope()
    queries, key = (
        manager.alloc_stack(q.shape, q.dtype),
        manager.alloc_stack(k_active.shape, q.dtype),
    )
    nisa.dma_copy(queries, q)
    nisa.dma_copy(key, k_active)
    attention_tkg(queries, key, v_active, k_prior, v_prior, mask, out, cfg, manager)
    manager.close_scope()
    return out


@nki.jit
def mlp(hidden, gate, up, down):
    """Return (1, tokens, hidden), by the kernel for few tokens or the one for many."""
    parameters = MLPParameters(hidden, gate, up, down)
    out = nl.ndarray(hidden.shape, hidden.dtype, nl.shared_hbm)
    if hidden.shape[1] <= 96:
        manager = SbufManager(0, 200 * 1024, Logger("mlp"))
        manager.set_name_prefix("mlp_")
        mlp_tkg(parameters, out, None, sbm=manager)
    else:
        mlp_cte(parameters, out, None)
    return out
