"""spill: moves tiles to HBM while SBUF has no room for all live tiles.

It runs only if the user asks for it. It takes a program with access patterns, and returns one whose
live tiles, in program order, stay within the given share of SBUF. A tile whose next use is far away
is stored to HBM and reloaded into a new tile before that use; a tile that one instruction computes
from constant inputs is recomputed instead. The inserted instructions are ordinary ones, which every
later stage and the proofs treat like the kernel's own.

Non-goals: PSUM, which transfers do not reach; the inside of device loops, each of which counts as
one item (the error names both); tensors at addresses that the kernel chose.
"""

from nkic.spill.stage import Spilled, spill
from nkic.spill.steps import Step
from nkic.spill.walk import Away, Traffic

__all__ = ["Away", "Spilled", "Step", "Traffic", "spill"]
