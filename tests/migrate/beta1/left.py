# /// nkic
# kernel = "kernel"
# nki = "beta1"
# [args]
# a = "float32[128, 512]"
# rows = "int32[8, 1]"
# ///
"""What no rule is sure of."""

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl


@nki.jit
def kernel(a, rows, short=False):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    i_p, i_f = nl.mgrid[0:128, 0:512]  # left: there is no `nki.language.mgrid`
    tile = nl.load(a[i_p, i_f])
    low = nl.copy(tile, mask=i_p < i_f)  # left: the mask is not an extent
    spare = nl.ndarray((2, nl.par_dim(128), 512), dtype=a.dtype, buffer=nl.sbuf)
    spare[0] = nl.copy(low)
    spare[1] = nl.copy(tile)
    if short:
        tile[0:128, 0] = nisa.activation(nl.exp, tile[:, 0])  # left: the evaluation did not reach
    nl.store(out[i_p, i_f], value=add(spare))
    first = nl.load(
        a[nl.load(rows),  # left: this index is not a slice
          nl.arange(512)[None, :]]  # left: there is no `nki.language.arange`
    )
    nl.store(out[0:8, :], value=first)
    return out


def add(tiles):
    return nl.add(tiles[0], tiles[1])


def another(a):  # left: `another` was not evaluated, and its instructions return tiles
    tile = nl.load(a)
    return nisa.activation(op=nl.exp, data=tile)
