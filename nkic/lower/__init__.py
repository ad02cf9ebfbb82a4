"""lower: views → access patterns; chooses engines and resolves accumulation.

- A view becomes a start partition, a partition count, and (step, num) pairs; adjacent dimensions
  are merged if one step covers both, unless the row keeps the rank.
- An instruction without an engine gets the row's choice.
- A matmul with `accumulate=None` overwrites locations that no matmul has written yet, and
  accumulates onto others.

It reports matmuls whose accumulation cannot be decided. Non-goals: checking shapes and patterns
(done by check).
"""

from nkic.lower.stage import lower

__all__ = ["lower"]
