"""The command `nki-run`: options and exit codes.

The simulator is imported on first use, so that `--version`, `--help` and `--explain` are fast.
Nothing of the compiler is used.
"""

from __future__ import annotations

import os
from typing import Any

from nkic.base.collector import without_collector
from nkic.cli.common import Session, Tool
from nkic.cli.common import run as run_command
from nkic.cli.common.main import bind_lazily
from nkic.cli.nki_run import options

LAZY_MODULES = (
    *("nkic.cli.nki_run.debugging", "nkic.cli.nki_run.inspecting", "nkic.cli.nki_run.reporting"),
    "nkic.report.profile",
)
EXAMPLES = (
    ("nki-run kernel.neff --inputs data.npz --outputs results.npz", "run it on these arrays"),
    ("nki-run kernel.neff --inputs data.npz --expected e.npz", "also compare the outputs"),
    (
        "nki-run profile kernel.neff --fill 'randn(0)' --report html=run.html",
        "write a page that shows where the time goes",
    ),
    ("nki-run inspect kernel.neff", "describe the file and its inputs"),
)
HELP = """Run a compiled NKI kernel on a simulated Trainium, and report values and cycles.

Neither the file nor the data is trusted: both are checked before they are used, and neither can
make this tool execute code, write anywhere, or take more memory than the kernel's own arrays.
Reading uninitialised bytes is an error. The same file and inputs give the same outputs and cycles
on every machine. Nothing is sent over the network.
"""
_TOO = "Every option of `nki-run run` is taken, too."
_COMMANDS = {
    "run": (options.CommandLine, HELP),
    "compare": (
        options.CompareLine,
        "Compare two runs (files of --json), or two compiled kernels. Nothing is run.",
    ),
    "equal": (
        options.EqualLine,
        "Tell whether two compiled kernels compute the same function, whatever their tiles, order "
        "and types, or show inputs at which they differ. Exit code 1 unless they are equal.",
    ),
    "profile": (
        options.CommandLine,
        "Run a kernel and show where its time goes: the cost of each line, when each engine was "
        f"busy, and what it waited for. {_TOO}",
    ),
    "debug": (
        options.CommandLine,
        "Run a kernel and look inside: stop at lines, report changes of tensors, write them, "
        f"compare them with a reference, or run in other orders. {_TOO}",
    ),
    "inspect": (options.InspectLine, "Describe, list or check a compiled kernel. Nothing is run."),
    "calibrate": (
        options.CalibrateLine,
        "Print the timing figures in use, or those that fit the profiles of another machine.",
    ),
}


def _tool(line: Any, name: str, help: str, **settings: Any) -> Tool:
    """Return a command that `carry_out` carries out in the function of this name."""

    def act(line: Any, session: Session) -> int:
        bind_lazily(LAZY_MODULES)
        with without_collector():  # the modules' objects stay alive
            from nkic.cli.nki_run import carry_out  # see above
        code: int = getattr(carry_out, name)(line, session)
        return code

    return Tool(line, act, help, only="" if settings else name, **settings)


command = _tool(
    options.CommandLine,
    "plain",
    HELP,
    examples=EXAMPLES,
    old=options.OLD,
    plain="run",
    commands={name: _tool(line, name, help) for name, (line, help) in _COMMANDS.items()},
)


def main() -> int:
    """Run the command line of the process, and return the exit code.

    A run limits BLAS to one thread (`simulate/numerics/matmul.py`): no others need to be started.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", os.environ.get("NKIC_BLAS_THREADS") or "1")
    return run_command(command, "nki-run", own_process=True)
