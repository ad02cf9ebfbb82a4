"""Timing figures for another machine, from profiles of its microkernels or times of kernels."""

from __future__ import annotations

from pathlib import Path

from nkic.base import files
from nkic.base.diagnostics import bad_value
from nkic.base.files import STANDARD
from nkic.base.text import clean
from nkic.calibrate import figures_named, fitted, read_profiles, read_rows, source
from nkic.cli.common import Session
from nkic.cli.nki_run.options import CalibrateLine
from nkic.machine.clock.machine_file import written
from nkic.machine.targets import DEFAULT, TARGETS
from nkic.neff.load import load
from nkic.neff.read import open_file

ROWS = ".csv"


def calibrate(line: CalibrateLine, session: Session) -> None:
    """Print the microkernels, or a machine file fitted to their profiles or to whole kernels."""
    if line.folder is None:
        files.write(STANDARD, source())
        return
    target = TARGETS[line.target or DEFAULT.name]
    if Path(line.folder).suffix == ROWS:
        names = figures_named(line.figures)
        observations = read_rows(line.folder, names, target, lambda path: load(open_file(path)))
    elif line.figures is not None:
        text = f"{clean(line.folder)}: --figures is for a file of rows, {ROWS}"
        raise bad_value(text, "profiles of microkernels say themselves which figures they show")
    else:
        observations = read_profiles(line.folder)
    fit = fitted(observations, target)
    if fit.silent and line.figures is not None:
        text = f"{clean(line.folder)}: no row tells anything about {', '.join(fit.silent)}"
        raise bad_value(text, "leave them out of --figures, or add kernels whose time they make")
    if len(fit.figures) > len(observations):
        text = f"{len(fit.figures)} figures do not follow from {len(observations)} observations"
        raise bad_value(f"{clean(line.folder)}: {text}", "name fewer in --figures, or add rows")
    told = (
        f"{len(observations)} observations; the clock is off by {100 * fit.error:.1f} % (median), "
        f"with its own figures by {100 * fit.before:.1f} %, and of each observation with the "
        f"figures that the others give by {100 * fit.left_out:.1f} %"
    )
    files.write(STANDARD, f"# {told}\n{written(fit.figures, target.name)}")
    session.status(told)
