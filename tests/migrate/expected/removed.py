# /// nkic
# nki = "0.7"
# [args]
# a = "float32[128, 512]"
# ///
# unproven: tensor_copy_dynamic_src
"""Names without a successor."""

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def kernel(a):
    x = nl.ndarray((128, 512), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    nisa.tensor_copy_dynamic_src(x, x)  # left: there is no `nki.isa.tensor_copy_dynamic_src` since NKI 0.4
    nisa.tensor_scalar(x, x, op0=nl.left_shift, operand0=1)
    return a
