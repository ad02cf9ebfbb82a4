"""search: better addresses and orders, where a schedule is far from what is possible.

Allocate places tensors in program order, and what takes over bytes waits for their former owner:
that can serialise what is independent. Here the order of issue is planned together with memory
(`plan`), allocated and scheduled again, and the shortest schedule is kept. What is
possible is a lower bound (`bound`) that knows nothing of addresses. Everything is deterministic.

Non-goals: device loops, and cores where the kernel's author chose addresses.
"""

from nkic.search.stage import Found, fit, search

__all__ = ["Found", "fit", "search"]
