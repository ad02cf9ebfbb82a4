"""Timing figures: one row each, with a unit and, per generation, a value, a standing and a source.

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
    """A value, its standing, and its source."""

    value: float
    standing: Standing
    source: str


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


def documented(value: float, source: str) -> Figure:
    """Return a figure that a public page states."""
    return Figure(value, Standing.DOCUMENTED, source)


def measured(value: float, source: str) -> Figure:
    """Return a figure read directly from a published profile."""
    return Figure(value, Standing.MEASURED, source)


def fitted(value: float, source: str) -> Figure:
    """Return a figure that approximates several published profiles."""
    return Figure(value, Standing.FITTED, source)


def assumed(value: float, source: str = SILENT) -> Figure:
    """Return a figure without a public source."""
    return Figure(value, Standing.ASSUMED, source)


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
