"""Figures of time for another machine: --print microkernels, --calibrate."""

from __future__ import annotations

from nkic.base import files
from nkic.base.files import STANDARD
from nkic.calibrate import fitted, read_profiles, source
from nkic.cli.common import Session
from nkic.cli.nki_run.options import CommandLine
from nkic.machine.clock.machine_file import written
from nkic.machine.targets import TARGETS


def calibrate(line: CommandLine, session: Session) -> None:
    """Prints the microkernels, or a machine file out of their profiles."""
    if line.calibrate is None:
        files.write(STANDARD, source())
        return
    found = read_profiles(line.calibrate)
    fit = fitted(found, TARGETS[line.target])
    files.write(STANDARD, written(fit.figures, line.target))
    session.status(
        f"{len(found)} observations; the clock is off by {100 * fit.error:.1f} % (median), with "
        f"its own figures by {100 * fit.before:.1f} %"
    )
