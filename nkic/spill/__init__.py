"""spill: tiles wait in HBM where SBUF has no room for all that are in use at once.

Only where the user asks for it. Takes a program with access patterns; gives one in which no more
of SBUF is in use at once, in program order, than was asked for. A tile whose next use is far away
is stored to HBM, and loaded into a tile of its own before that use; what one instruction makes
without reading anything that changes is made again instead. All of it is ordinary instructions,
which every later stage, and the proofs, treat like the kernel's own.

Non-goals: PSUM, which transfers do not reach; the inside of device loops, each of which counts as
one item (the error names both); tensors at addresses that the kernel chose.
"""

from nkic.spill.stage import Spilled, spill
from nkic.spill.steps import Step
from nkic.spill.walk import Away, Traffic

__all__ = ["Away", "Spilled", "Step", "Traffic", "spill"]
