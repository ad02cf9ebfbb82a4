"""The judge of kernels: is a candidate right, how fast is it, and why not faster.

A task is trusted: cases, a reference, a measure of closeness, limits. A candidate is not: each is
compiled and run in a process of its own, which never sees the reference or what is expected. Its
answer is bytes, which are checked like a stranger's file, and compared elsewhere.
"""

from nkic.judge.evaluation import CaseResult, Evaluation, Flag, Placed, placed
from nkic.judge.judge import Candidate, Judge, Results, evaluate
from nkic.judge.pool import LocalPool, Pool
from nkic.judge.task import Case, Task, read_task, task_of

__all__ = [
    "Candidate",
    "Case",
    "CaseResult",
    "Evaluation",
    "Flag",
    "Judge",
    "LocalPool",
    "Placed",
    "Pool",
    "Results",
    "Task",
    "evaluate",
    "placed",
    "read_task",
    "task_of",
]
