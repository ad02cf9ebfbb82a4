"""allocate: gives every on-chip tensor an address.

Takes a program with access patterns and its dependence graphs. Returns the program with
`addresses`, and the graphs with reuse edges: a tensor that takes over bytes waits until the last
access to their former owner is complete. If placement in program order fails, tensors are packed by
size, then tensors of few partitions are placed side by side, and finally first writes are
postponed.

Non-goals: moving tensors to HBM when they do not fit (the kernel's author decides what lives on
chip).
"""

from nkic.allocate.stage import allocate
from nkic.allocate.usage import peak

__all__ = ["allocate", "peak"]
