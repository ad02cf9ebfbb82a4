"""prove: audits that re-derive what earlier stages claim, without sharing code with them.

Their only input is the recorded program, raw addresses, streams and rows.

    lowered     the lowered program is the recorded one: instructions, operands, accumulation
    addresses   every tensor inside its memory, no two live tensors sharing a byte
    run         abstract execution of the streams: no deadlock, and a vector clock per instruction
    order       each instruction exactly once, in its place; conflicts in program order: memory,
                engine state, registers, user edges, regions
    spilled     spilled tiles: every instruction reads the values that it reads without spilling
    file        the bytes of the file, read back, hold exactly the proven schedule

`effects` derives what instructions access. `model.RULES` lists everything that is proven.
"""

from nkic.prove.addresses import prove_addresses, prove_spilled
from nkic.prove.effects import read
from nkic.prove.file import Sections, prove_file
from nkic.prove.lowered import prove_lowered
from nkic.prove.model import RULES, Finding
from nkic.prove.order import prove_order

__all__ = [
    "RULES",
    "Finding",
    "Sections",
    "prove_addresses",
    "prove_file",
    "prove_lowered",
    "prove_order",
    "prove_spilled",
    "read",
]
