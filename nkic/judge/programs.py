"""What a compiled program is made of: facts that no text can hide."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from nkic.machine.dtypes import DType
from nkic.machine.engines import Engine
from nkic.neff.records import Executable, InstructionRecord, PatternRecord


class Facts(NamedTuple):
    """The instructions by name, the narrowest float type in memory, and whether any computes."""

    instructions: Mapping[str, int]
    narrowest: DType | None
    computes: bool


def facts_of(executable: Executable) -> Facts:
    """Return the facts of a program, from its records."""
    names: Counter[str] = Counter()
    found: set[DType] = set()
    computes = False
    for stream in executable.streams:
        for item in stream.items:
            if not isinstance(item, InstructionRecord) or item.row is None:
                continue
            names[item.row.name] += 1
            patterns = [p for p in item.operands if isinstance(p, PatternRecord)]
            found |= {p.dtype.element or p.dtype for p in patterns}
            computes = computes or (stream.engine is not Engine.DMA and len(patterns) > 1)
    floats = [dtype for dtype in found if dtype.is_float]
    narrowest = min(floats, key=lambda dtype: (dtype.size, dtype.name), default=None)
    return Facts(dict(sorted(names.items())), narrowest, computes)
