# test: check
# args: a=float32[128,64]
"""Packages, relative imports, star imports, re-exports, aliases, fallbacks and circles."""
import helpers
import helpers.shapes.sizes as sizes
import nki
import nki.isa as nisa
import nki.language as nl
from helpers import ROWS, half, halves
from helpers import shapes as forms
from helpers.rows import PARTITIONS
from helpers.shapes import *

try:
    from nothing.at.all import fast
except ImportError:
    from helpers.shapes.sizes import half as fast


@nki.jit
def kernel(a):
    assert ROWS == PARTITIONS == helpers.ROWS == helpers.rows.PARTITIONS == 128
    assert halves(5) == (2, 3) and helpers.halves(4) == (2, 2) and fast(9) == 4
    assert sizes.WIDTHS == [64, 128, 256] == WIDTHS and forms.WIDTHS is sizes.WIDTHS
    assert forms.whole() == whole() == 128 and half is sizes.half and sizes.torch is None
    from helpers.shapes.sizes import more

    assert more is WIDTHS
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out
