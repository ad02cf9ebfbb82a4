"""Carry out the command line of a subcommand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from nkic.base.collector import without_collector
from nkic.base.diagnostics import Level, UsageFailed, make
from nkic.base.text import clean
from nkic.cli.common import Session, of_file
from nkic.cli.common.options import given_options, refuse_by_table, rows
from nkic.cli.nki_run import inspecting
from nkic.cli.nki_run.options import (
    TABLE,
    TO_STDOUT,
    CalibrateLine,
    CommandLine,
    CompareLine,
    EqualLine,
    InspectLine,
    refuse_conflicts,
)


def run(line: CommandLine, session: Session) -> int:
    refuse_conflicts(line, given_options())

    def act() -> int:
        # Imported here because inspecting a file needs neither NumPy nor the simulator.
        with without_collector():  # the process ends with the run, and that frees everything
            from nkic.cli.nki_run.running import run_kernel

            return run_kernel(line, session)

    return _carried_out(act, line.artifact, session)


def profile(line: CommandLine, session: Session) -> int:
    reports = line.report if line.report or line.json or line.against else TO_STDOUT
    return run(replace(line, report=reports), session)


def debug(line: CommandLine, session: Session) -> int:
    own = {name: row.name for name, row in TABLE.items() if row.of == "debug"}
    if not own.keys() & given_options().keys():
        text = f"no option says what to look at: {', '.join(own.values())}"
        advice = "for example `--break LINE`; `nki-run debug -h` shows them"
        raise UsageFailed([make("missing-argument", text, help=advice)])
    return run(line, session)


def plain(line: CommandLine, session: Session) -> int:
    """Run a kernel without the name of a subcommand, with the options of any that runs one."""
    for name, spelling in given_options().items():
        if TABLE[name].of:
            command = f"nki-run {TABLE[name].of.split()[0]}"
            text = f"`{spelling}` is now an option of `{command}`"
            advice = f"write `{command} {clean(line.artifact)} …`"
            session.renamed += [make("old-spelling", text, help=advice, level=Level.WARNING)]
            break
    return run(line, session)


def compare(line: CompareLine, session: Session) -> int:
    return _carried_out(lambda: inspecting.compare_files(line, session), None, session)


def equal(line: EqualLine, session: Session) -> int:
    return _carried_out(lambda: inspecting.equal_files(line), None, session)


def inspect(line: InspectLine, session: Session) -> int:
    refuse_by_table(rows(InspectLine), given_options())
    return _carried_out(lambda: inspecting.inspect(line), line.artifact, session)


def calibrate(line: CalibrateLine, session: Session) -> int:
    refuse_by_table(rows(CalibrateLine), given_options(), line.print or "")
    if line.folder is None and line.print is None:
        advice = "for example `nki-run calibrate profiles`"
        raise UsageFailed([make("missing-argument", "missing the folder of profiles", help=advice)])

    def act() -> int:
        if line.print == "machine":
            inspecting.print_machine(line)
            return 0
        inspecting.calibrate(line, session)
        return 0

    return _carried_out(act, None, session)


def _carried_out(act: Callable[[], Any], artifact: str | None, session: Session) -> int:
    """Set the limits of the process, act, and return the exit code. Raises `NkicError`."""
    session.warn_of_settings()
    session.set_limits()
    with of_file(artifact):
        return act() or 0
