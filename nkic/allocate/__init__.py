"""allocate: gives every on-chip tensor an address.

Takes a program with access patterns and its dependence graphs; gives the program with
`addresses`, and the graphs with reuse edges: a tensor that takes over bytes waits until the
last access to their former owner is complete. Where program order leaves no room, tensors are
packed by size, then those of few partitions side by side, and at last first writes are put off.

Non-goals: moving tensors to HBM when they do not fit (the kernel's author decides what
lives on chip).
"""

from nkic.allocate.stage import allocate
from nkic.allocate.usage import peak

__all__ = ["allocate", "peak"]
