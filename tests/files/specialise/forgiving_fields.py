# test: compile
# args: a=float32[128,512]
"""Classes of NKI may leave out the types and the defaults of their fields."""

from dataclasses import dataclass

import nki
import nki.isa as nisa
import nki.language as nl


@dataclass
class Section(nl.NKIObject):
    rows: int
    offset = None
    unset: int

    def whole(self):
        return self.unset is None


class Plain(nl.NKIObject):
    rows = 3
    name: str


@nki.jit
def copy(a):
    section = Section(rows=128, offset=0)
    plain = Plain(rows=2, name="x")
    assert section.whole() and section.offset == 0 and section == Section(128, offset=0)
    assert (plain.rows, plain.name, Plain().rows, Plain().name) == (2, "x", 3, None)
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray((section.rows, 512), dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    Section(128, wrong=1)  # error[NKI0240]: wrong
    return out
