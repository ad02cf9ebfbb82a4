# test: check
# args: a=float32[128,512]
"""One run reports every name that a module of NKI does not have, in the order of the source.

Names in a branch wait until the kernel comes there.
"""
import nki
import nki.isa as nisa
import nki.isaa as wrong  # error[import-failed]: `nki` has no module `isaa`
import nki.language as nl


def helper(t):
    nisa.tensor_copi(dst=t, src=t)  # error[unknown-attribute]: `nki.isa` has no `tensor_copi`


@nki.jit
def kernel(a):
    tile = nl.ndaray(a.shape, dtype=a.dtype, buffer=nl.sbuf)  # error[unknown-attribute]: `nki.language` has no `ndaray`
    helper(tile)
    nisa.memset(dst=tile, value=nl.pi)  # error[unknown-attribute]: has no `pi`
    rows = nl.arange(128)  # error[removed-name]: it was removed in NKI beta2
    wide = nl.ndarray(a.shape, dtype=nl.float64, buffer=nl.sbuf)  # error[unknown-dtype]: no Trainium engine supports float64
    nisa.tensor_tensor(dst=tile, data1=tile, data2=tile, op=nisa.add)  # error[unknown-attribute]: `nki.isa` has no `add`
    wrong.dma_copy(dst=tile, src=a)
    if hasattr(nl, "arrange"):
        nl.arrange(3)
    return a
