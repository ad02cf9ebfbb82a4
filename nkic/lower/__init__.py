"""lower: views → access patterns; engines chosen; accumulation decided.

- A view becomes a start partition, a partition count, and (step, num) pairs in which
  neighbouring dimensions that one step can walk are merged, unless the row keeps the rank.
- An instruction without an engine gets the row's choice.
- A matmul with `accumulate=None` overwrites what no matmul has written yet and accumulates
  onto what one has.

Reports matmuls whose accumulation cannot be decided. Non-goals: checking shapes and patterns
(check did).
"""

from nkic.lower.stage import lower

__all__ = ["lower"]
