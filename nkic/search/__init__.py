"""search: better addresses and orders, for schedules that are far from the lower bound.

Allocate places tensors in program order, and a tensor that takes over bytes waits for their former
owner, which can serialise independent instructions. Here the order of issue is planned together
with memory (`plan`), allocated and scheduled again, and the shortest schedule is kept. The lower
bound (`bound`) is independent of addresses. Everything is deterministic.

Non-goals: device loops, and cores whose addresses the kernel's author chose.
"""

from nkic.search.stage import ScheduledProgram, fit, search

__all__ = ["ScheduledProgram", "fit", "search"]
