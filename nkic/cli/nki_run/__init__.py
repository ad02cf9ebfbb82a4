"""The command `nki-run`: options and exit codes.

The simulator is imported on first use, so that `--version`, `--help` and `--explain` are fast.
Nothing of the compiler is used.
"""

from __future__ import annotations

import os
from typing import Any

import click

from nkic.base.collector import without_collector
from nkic.cli.common import Session, Tool, run, shared_options
from nkic.cli.common.lazy import bind_lazily
from nkic.cli.nki_run.options import CommandLine, own_options

EXAMPLES = (
    (
        "nki-run kernel.neff --inputs data.npz --outputs results.npz",
        "run the kernel on these arrays",
    ),
    (
        "nki-run kernel.neff --inputs data.npz --expected e.npz",
        "also compare the outputs with these",
    ),
    (
        "nki-run kernel.neff --fill 'randn(0)' --json",
        "run it on random numbers; print the report as JSON",
    ),
    ("nki-run kernel.neff --info", "describe the file and its inputs"),
)
LAZY_MODULES = (
    *("nkic.cli.nki_run.comparing", "nkic.cli.nki_run.debugging", "nkic.cli.nki_run.dumping"),
    *("nkic.cli.nki_run.fuzzing", "nkic.cli.nki_run.inspecting", "nkic.cli.nki_run.reporting"),
)
HELP = """Run a compiled NKI kernel on a simulated Trainium, and report values and cycles.

Neither the file nor the data is trusted: both are checked before they are used, and neither can
make this tool execute code, write anywhere, or take more memory than the kernel's own arrays.
Reading uninitialised bytes is an error. The same file and inputs give the same outputs and cycles
on every machine. Nothing is sent over the network.
"""


@click.command(cls=Tool, examples=EXAMPLES, help=HELP, add_help_option=False)
@own_options
@shared_options
@click.pass_obj
def command(session: Session, /, **words: Any) -> int:
    bind_lazily(LAZY_MODULES)
    with without_collector():  # the modules' objects stay alive
        from nkic.cli.nki_run.carry_out import carry_out  # see above

    return carry_out(CommandLine(**words), session)


def main() -> int:
    """Run the command line of the process, and return the exit code.

    A run limits BLAS to one thread (`simulate/threads.py`), so no others need to be started.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", os.environ.get("NKIC_BLAS_THREADS") or "1")
    return run(command, "nki-run", own_process=True)
