"""What a command line asks for, done."""

from __future__ import annotations

from dataclasses import replace

from nkic.base.collector import without_collector
from nkic.base.diagnostics import ArtifactFailed
from nkic.base.text import clean
from nkic.cli.common import Session, walls
from nkic.cli.common.conflicts import given
from nkic.cli.nki_run import comparing, inspecting
from nkic.cli.nki_run.conflicts import refuse_conflicts
from nkic.cli.nki_run.options import CommandLine


def carry_out(line: CommandLine, session: Session) -> int:
    """Does it; gives the exit code. Raises `NkicError` with what is wrong."""
    refuse_conflicts(line, given())
    walls.warn_of_variables(session)
    walls.raise_around(session, line.timeout)
    try:
        return _do(line, session)
    except ArtifactFailed as refused:  # the reader knows bytes, not where they came from
        path = clean(line.artifact or "")
        named = [replace(d, message=f"`{path}`: {d.message}") for d in refused.diagnostics]
        raise ArtifactFailed(named) from refused


def _do(line: CommandLine, session: Session) -> int:
    if line.diff is not None:
        return comparing.compare_files(line, session)
    if line.print == "machine":
        inspecting.print_machine(line)
    elif line.print is not None or line.calibrate is not None:
        from nkic.cli.nki_run.calibrating import calibrate  # needs NumPy

        calibrate(line, session)
    elif line.info:
        inspecting.describe(line)
    elif line.disasm:
        inspecting.list_program(line)
    elif line.verify:
        inspecting.verify(line)
    else:
        # Here, because looking at a file needs neither NumPy nor the simulator.
        with without_collector():
            from nkic.cli.nki_run.running import run_kernel

        return run_kernel(line, session)
    return 0
