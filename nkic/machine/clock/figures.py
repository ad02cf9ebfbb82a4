"""Timing figures: one row each, with a unit and, per generation, a value, a standing, a source and
a likely error.

Cost formulas read the figures from `Target.figures`; a machine file (`machine_file.py`) may
override them.

An engine's time has two parts, in cycles of its clock beyond the elements that stream: `interval`,
until it accepts the next instruction, and `duration`, until the result is available.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from nkic.machine.clock.sources import LIKE_V3, SILENT

GENERATIONS = (2, 3, 4)


class Standing(Enum):
    """How a figure is known; docs/fidelity.md defines the words."""

    DOCUMENTED = "documented"
    MEASURED = "measured"
    FITTED = "fitted"
    ASSUMED = "assumed"


class Figure(NamedTuple):
    """A value, its standing, its source, and its likely error as a share of the value."""

    value: float
    standing: Standing
    source: str
    error: float


class Parameter(NamedTuple):
    """A timing parameter; `figures` are its values in the order of GENERATIONS.

    Values are from `minimum` to `maximum`.
    """

    name: str
    unit: str
    says: str
    figures: tuple[Figure, Figure, Figure]
    minimum: float = 0.0
    maximum: float = 1e9

    def of(self, generation: int) -> Figure:
        """Return the figure of a generation."""
        return self.figures[GENERATIONS.index(generation)]


# The likely error of a figure whose source does not say how far it spreads: of a page's round
# number, of a profile of one kernel, of a compromise between several, and of a guess.
ERRORS = {
    Standing.DOCUMENTED: 0.03,
    Standing.MEASURED: 0.05,
    Standing.FITTED: 0.1,
    Standing.ASSUMED: 0.5,
}
LEAST_ERROR = 0.02  # profiles of two kernels differ by as much


def documented(value: float, source: str, *seen: float) -> Figure:
    """Return a figure that a public page states; `seen` are the values that others state."""
    return _figure(value, Standing.DOCUMENTED, source, seen)


def measured(value: float, source: str, *seen: float) -> Figure:
    """Return a figure read directly from a published profile; `seen` are the values of others."""
    return _figure(value, Standing.MEASURED, source, seen)


def fitted(value: float, source: str, *seen: float) -> Figure:
    """Return a figure that approximates several published profiles, which have the values
    `seen`.
    """
    return _figure(value, Standing.FITTED, source, seen)


def assumed(value: float, source: str = SILENT, *seen: float) -> Figure:
    """Return a figure without a public source; `seen` are values that others suggest."""
    return _figure(value, Standing.ASSUMED, source, seen)


def _figure(value: float, standing: Standing, source: str, seen: tuple[float, ...]) -> Figure:
    error = ERRORS[standing]
    if seen:
        error = max(LEAST_ERROR, *(abs(other / value - 1) for other in seen))
    return Figure(value, standing, source, error)


def row(name: str, unit: str, says: str, *figures: Figure, minimum: float = 0.0) -> Parameter:
    """Return a parameter with one figure for all generations, or one per generation.

    With two figures, the last generation equals the one before it (assumed).
    """
    if len(figures) == 1:
        figures *= 3
    if len(figures) == 2:
        figures = (*figures, assumed(figures[1].value, LIKE_V3))
    first, second, third = figures
    return Parameter(name, unit, says, (first, second, third), minimum)
