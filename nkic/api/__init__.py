"""nkic from Python: compile a kernel, run it, or call it with arrays.

`compile` makes an `Artifact`, `run` simulates one, and `call` does both for a Python function and
the arguments of a call. `run_ranks` and `call_ranks` do the same for several ranks together.
Failures raise `CompileError` or `RunError`, with the same diagnostics as the commands.
"""

from nkic.api.arrays import Adapter, adapters
from nkic.api.artifact import Artifact
from nkic.api.calling import Called, Prepared, call, call_ranks, prepare
from nkic.api.comparing import batch_invariant, equal, rank
from nkic.api.compiling import compile
from nkic.api.errors import ApiError, CompileError, NkicWarning, RunError
from nkic.api.running import Result, fuzz_order, run, run_ranks

__all__ = [
    "Adapter",
    "ApiError",
    "Artifact",
    "Called",
    "CompileError",
    "NkicWarning",
    "Prepared",
    "Result",
    "RunError",
    "adapters",
    "batch_invariant",
    "call",
    "call_ranks",
    "compile",
    "equal",
    "fuzz_order",
    "prepare",
    "rank",
    "run",
    "run_ranks",
]
