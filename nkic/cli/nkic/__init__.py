"""The command `nkic`: options and exit codes.

The compiler is imported on first use, so that `--version`, `--help` and `--explain` are fast.
"""

from __future__ import annotations

import os
from typing import Any

from nkic.base.collector import without_collector
from nkic.cli.common import Session, Tool, run
from nkic.cli.common.main import bind_lazily
from nkic.cli.common.options import Given, given_options, refuse_by_table, rows
from nkic.cli.common.tool import Act
from nkic.cli.nkic.options import (
    ELSEWHERE,
    IN_TASK,
    OLD,
    CommandLine,
    EvaluateLine,
    LspLine,
    ServeLine,
    TuneLine,
)

EXAMPLES = (
    ("nkic kernel.py", "compile to kernel.neff, as the file's `# /// nkic` block says"),
    (
        "nkic kernel.py -k add --arg 'a=bf16[128,512]' --const n=3",
        "choose the kernel and its arguments",
    ),
    ("nkic kernel.py --check", "report all errors, write nothing"),
    ("nkic kernels/ extra.py -j 4", "several files, a few at a time, with a table of results"),
    ("nkic kernel.py --emit ir=-", "show the program that the kernel evaluates to"),
    ("nkic evaluate task.toml a.py b.py", "judge candidates: right, how fast, and why not faster"),
    (
        "nkic tune kernel.py task.toml --vary tile=128,256",
        "find the fastest choices that are right",
    ),
)
LAZY_MODULES = (
    *("nkic.program.text", "nkic.artifact.assemble", "nkic.artifact.disassemble"),
    *("nkic.report.allocations", "nkic.report.compare", "nkic.specialise.native"),
    *("nkic.compiler.spill", "nkic.compiler.forms", "nkic.compiler.remarks"),
    "nkic.cli.nkic.prints",
)
HELP = """Compile an NKI kernel for Trainium to a file that nki-run runs.

The kernel's file is read as text: host code in it is neither imported nor executed. The
kernel's arguments and target come from the options, the arrays of --like, and the inline block of
comments in the file, in this order of precedence. Nothing is sent over the network. --limit
lists the limits of this process.
"""


def _compile(line: CommandLine, session: Session) -> int:
    if not line.is_many or line.print is not None:
        return _compile_file(line, session)
    with without_collector():  # see below; the files' processes are forked from this one
        bind_lazily(LAZY_MODULES)
        from nkic.cli.nkic import many  # see above
    return many.carry_out(line, session, _compile_file)


def _compile_file(line: CommandLine, session: Session, given: Given | None = None) -> int:
    from nkic.cli.nkic import replay  # see above

    cached = replay.cached_run(line, session)
    if cached is not None and cached.replay():
        return 0
    with without_collector():  # the modules' objects stay alive
        bind_lazily(LAZY_MODULES)
        from nkic.cli.nkic.carry_out import carry_out

    return carry_out(line, session, cached, given)


def _judging(name: str) -> Act:
    """Return what carries out a command in the function of this name."""

    def act(line: Any, session: Session) -> int:
        from nkic.cli.nkic import judging  # see above

        refuse_by_table(rows(type(line)), given_options())
        code: int = getattr(judging, name)(line, session)
        return code

    return act


def _serve_editor(line: LspLine, session: Session) -> int:
    from nkic.serve.lsp import start  # see above

    session.status("waits for an editor, which starts this command itself; Ctrl-C ends it")
    return start()


EVALUATE = """Judge candidates on a task: whether each is right, how fast it is, and why not faster.

The task is trusted: a TOML file with [[case]], whose `inputs` are types by name, and [reference],
whose `function` is FILE.py:NAME. Candidates are not: each is compiled and run in a process of its
own, which never sees what is expected. Correct ones are listed first, fastest first.
"""
TUNE = """Find the choices with which a kernel is fastest, and right.

A choice is a named value in the kernel's file: `TILE = 512`, or the default of a parameter. Every
point is compiled in a process of its own, which gives its time; the best are run and compared with
the task's reference. Points that the compiler refuses are counted by reason.
"""
SERVE = """Judge candidates that come over HTTP, as `evaluate` does: POST /evaluate.

Bound to this machine alone unless --host says otherwise. GET /openapi.json describes the rest.
"""
LSP = """Serve an editor: errors as you type, fixes, hover, hints.

Speaks the Language Server Protocol over standard input and output: write `nkic lsp` as the server's
command into the editor's settings. Needs the package pygls.
"""
# A candidate's limits are its task's, an editor's are fixed, and neither has levels of warnings.
OWN = {"limit", "warn", "allow", "deny"}
OF_TUNE = {
    **IN_TASK,
    "-O": f"{IN_TASK['-O']}, or vary it: `--vary -O=0..2`",
    "-o": "it is `--write FILE` here",
}
command = Tool(
    CommandLine,
    _compile,
    HELP,
    examples=EXAMPLES,
    old=OLD,
    elsewhere=ELSEWHERE,
    commands={
        "evaluate": Tool(
            EvaluateLine, _judging("evaluate"), EVALUATE, without=OWN, elsewhere=IN_TASK
        ),
        "tune": Tool(TuneLine, _judging("tuned"), TUNE, without=OWN, elsewhere=OF_TUNE),
        "serve": Tool(ServeLine, _judging("serve"), SERVE, without=OWN, elsewhere=IN_TASK),
        "lsp": Tool(LspLine, _serve_editor, LSP, without=OWN),
    },
)


def main() -> int:
    """Run the command line of the process, and return the exit code.

    NumPy is used for tables, not for arithmetic, so its BLAS need not start threads.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    return run(command, "nkic", own_process=True)
