"""Timing figures for another machine: its microkernels, and what their profiles tell."""

from __future__ import annotations

from nkic.base import files
from nkic.base.files import STANDARD
from nkic.calibrate import fitted, read_profiles, source
from nkic.cli.common import Session
from nkic.cli.nki_run.options import CalibrateLine
from nkic.machine.clock.machine_file import written
from nkic.machine.targets import DEFAULT, TARGETS


def calibrate(line: CalibrateLine, session: Session) -> None:
    """Print the microkernels, or a machine file fitted to their profiles."""
    if line.folder is None:
        files.write(STANDARD, source())
        return
    target = TARGETS[line.target or DEFAULT.name]
    observations = read_profiles(line.folder)
    fit = fitted(observations, target)
    files.write(STANDARD, written(fit.figures, target.name))
    session.status(
        f"{len(observations)} observations; the clock is off by {100 * fit.error:.1f} % (median), "
        f"with its own figures by {100 * fit.before:.1f} %"
    )
