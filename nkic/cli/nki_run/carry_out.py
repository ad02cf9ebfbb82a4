"""Carry out a command line."""

from __future__ import annotations

from dataclasses import replace

from nkic.base.collector import without_collector
from nkic.base.diagnostics import ArtifactFailed
from nkic.base.text import clean
from nkic.cli.common import Session, process_limits
from nkic.cli.common.conflicts import given_options
from nkic.cli.nki_run import comparing, inspecting
from nkic.cli.nki_run.conflicts import refuse_conflicts
from nkic.cli.nki_run.options import CommandLine


def carry_out(line: CommandLine, session: Session) -> int:
    """Carry out the command line, and return the exit code. Raises `NkicError`."""
    refuse_conflicts(line, given_options())
    process_limits.warn_of_variables(session)
    process_limits.set_limits(session, line.timeout)
    try:
        return _do(line, session)
    except ArtifactFailed as refused:  # the reader sees bytes, not their path
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
        # Imported here because inspecting a file needs neither NumPy nor the simulator.
        with without_collector():  # the process ends with the run, and that frees everything
            from nkic.cli.nki_run.running import run_kernel

            return run_kernel(line, session)
    return 0
