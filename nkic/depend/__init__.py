"""depend: Program with access patterns → one DependenceGraph per core.

Two accesses conflict if they share a cell of a tensor (ir.overlap) and one of them writes, or if
they use the same engine state. Edges are kept only to the last writer and to the readers since, so
the graph grows linearly with the program.

Non-goals: ordering between cores (barriers do that), bytes shared by two tensors (allocate adds
those edges when it knows addresses).
"""

from nkic.depend.graph import depend

__all__ = ["depend"]
