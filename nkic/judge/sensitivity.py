"""How far a program's time follows the figures of the clock that are not known exactly.

A kernel can win because the clock is wrong, not because it is fast. So its program is timed again
with each figure at either end of its likely error. A figure's share of the critical path says what
a small change does; timing again also finds the paths that a change makes critical.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from nkic import pace
from nkic.machine.targets import TARGETS, likely_error
from nkic.neff.records import Executable
from nkic.report.insight.exposure import Noted

# Items that are simulated at most, in all timings of a program together; the figures with the
# least effect are left out first.
ITEMS = 100_000
LEAST = 0.0005  # change of the time that is kept, as a share of it


def sensitivity(
    executable: Executable, shares: Mapping[str, float]
) -> dict[str, tuple[float, float, float]]:
    """Return by figure the changes of the time, as shares of it, with the figure at the upper and
    at the lower end of its likely error, and that error.

    `shares` of the critical path by figure say which figures to try first. The result is empty for
    a program that is too long.
    """
    target = TARGETS[executable.target].used_by(executable.cores)
    most = ITEMS // (2 * max(1, pace.items(executable)))
    noted = Noted(target.figures)
    time = pace.duration(executable, replace(target, figures=noted)) if most else None
    if not time:
        return {}

    def changed(name: str, factor: float) -> float:
        figures = {**target.figures, name: target.figures[name] * factor}
        return round(
            (pace.duration(executable, replace(target, figures=figures)) or 0) / time - 1, 4
        )

    errors = {name: likely_error(name, target) for name in noted.read}
    effects = {name: abs(shares.get(name, 0.0)) * error for name, error in errors.items()}
    found = {}
    for name in sorted(errors, key=lambda name: (-effects[name], -errors[name], name))[:most]:
        more, less = changed(name, 1 + errors[name]), changed(name, 1 / (1 + errors[name]))
        if max(abs(more), abs(less)) >= LEAST:
            found[name] = more, less, round(errors[name], 4)
    return found
