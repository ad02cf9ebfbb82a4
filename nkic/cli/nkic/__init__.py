"""The command `nkic`: options and exit codes.

The compiler is imported on first use, so that `--version`, `--help` and `--explain` are fast.
"""

from __future__ import annotations

import os
from typing import Any

import click

from nkic.base.collector import without_collector
from nkic.cli.common import Session, Tool, run, shared_options
from nkic.cli.common.lazy import bind_lazily
from nkic.cli.nkic.options import CommandLine, own_options

EXAMPLES = (
    ("nkic kernel.py", "compile to kernel.neff, as the file's `# /// nkic` block says"),
    (
        "nkic kernel.py -k add --arg 'a=bf16[128,512]' --const n=3",
        "choose the kernel and its arguments",
    ),
    ("nkic kernel.py --check", "report all errors, write nothing"),
    ("nkic kernel.py --emit ir=-", "show the program that the kernel evaluates to"),
)
LAZY_MODULES = (
    *("nkic.ir.read_text", "nkic.neff.listing.assemble", "nkic.neff.listing.disassemble"),
    *("nkic.report.allocation_picture", "nkic.specialise.native", "nkic.spill"),
    *("nkic.driver.changes", "nkic.driver.remarks", "nkic.report.remarks"),
    *("nkic.cli.nkic.prints", "nkic.cli.nkic.records", "nkic.cli.nkic.settings"),
    "nkic.parse.lexical_errors",
)
HELP = """Compile an NKI kernel for Trainium to a file that nki-run runs.

The kernel's file is read as text: host code in it is neither imported nor executed. The
kernel's arguments and target come from the options, the arrays of --like, and the inline block of
comments in the file, in this order of precedence. Nothing is sent over the network.
"""


@click.command(cls=Tool, examples=EXAMPLES, help=HELP, add_help_option=False)
@own_options
@shared_options
@click.pass_obj
def command(session: Session, /, **words: Any) -> int:
    from nkic.cli.nkic import replay  # see above

    line = CommandLine(**words)
    cached = replay.cached_run(line, session)
    if cached is not None and cached.replay():
        return 0
    with without_collector():  # the modules' objects stay alive
        bind_lazily(LAZY_MODULES)
        from nkic.cli.nkic.carry_out import carry_out

    return carry_out(line, session, cached)


def main() -> int:
    """Run the command line of the process, and return the exit code.

    NumPy is used for tables, not for arithmetic, so its BLAS need not start threads.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    return run(command, "nkic", own_process=True)
