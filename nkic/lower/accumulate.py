"""Decides `accumulate=None` of matmuls: the first write of a PSUM location overwrites.

Source: `nki.isa.nc_matmul`, accumulation mode. Locations are the bytes of one tensor, as
boxes; a matmul whose dst is partly written and partly not is refused, because one
instruction has one flag.
"""

from __future__ import annotations

from nkic.ir.overlap import Box, box, overlap
from nkic.ir.tensors import AccessPattern


class Written:
    """What matmuls have written of each PSUM tensor, in program order."""

    def __init__(self) -> None:
        self.boxes: dict[int, list[Box]] = {}

    def decide(self, dst: AccessPattern) -> bool | None:
        """True: accumulate, False: overwrite, None: dst is partly written."""
        area = box(dst)
        known = self.boxes.setdefault(dst.tensor.number, [])
        if any(_inside(area, other) for other in known):
            return True
        if any(overlap(area, other) for other in known):
            return None
        known.append(area)
        return False

    def note(self, dst: AccessPattern) -> None:
        """Remembers a matmul with an explicit flag."""
        area = box(dst)
        known = self.boxes.setdefault(dst.tensor.number, [])
        if not any(_inside(area, other) for other in known):
            known.append(area)


def _inside(a: Box, b: Box) -> bool:
    return all(
        other_low <= low and high <= other_high
        for (low, high), (other_low, other_high) in zip(a, b, strict=True)
    )
