"""nkic: compile and simulate AWS Trainium NKI kernels without a Trainium.

The functions of `nkic.api`, `nkic.install` of `nkic.nki`, `nkic.evaluate` of `nkic.judge` and
`nkic.tune` of `nkic.judge.tuning` are re-exported here. They are imported on first use.
"""

from __future__ import annotations

# The name that type checkers recognise. Both commands start by importing this module, and an
# interrupt before they have set their signal handlers would show a traceback, so nothing slow is
# imported here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from nkic.api import (
        Artifact,
        Called,
        CompileError,
        NkicWarning,
        Result,
        RunError,
        batch_invariant,
        call,
        call_ranks,
        compile,
        equal,
        fuzz_order,
        prepare,
        rank,
        run,
        run_ranks,
    )
    from nkic.judge import evaluate
    from nkic.judge.tuning import tune
    from nkic.nki import install

__version__ = "0.1.0"
__all__ = [
    "Artifact",
    "Called",
    "CompileError",
    "NkicWarning",
    "Result",
    "RunError",
    "batch_invariant",
    "call",
    "call_ranks",
    "compile",
    "equal",
    "evaluate",
    "fuzz_order",
    "install",
    "prepare",
    "rank",
    "run",
    "run_ranks",
    "tune",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'nkic' has no attribute {name!r}")
    from importlib import import_module

    homes = {"install": "nkic.nki", "evaluate": "nkic.judge", "tune": "nkic.judge.tuning"}
    return getattr(import_module(homes.get(name, "nkic.api")), name)


def load_ipython_extension(shell: Any) -> None:
    """Do what `%load_ext nkic` asks for (docs/notebook.md)."""
    from importlib import import_module

    import_module("nkic.notebook").load(shell)


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
