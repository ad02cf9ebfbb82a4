"""The figures of time: one row each, with its unit, its value on every generation, and for each
value a standing and a source. Cost formulas read them from `Target.figures`; a machine file
(`machine_file.py`) may give others.

An engine's time has two parts, in cycles of its clock beyond the elements that stream: `interval`,
until it takes the next instruction, and `duration`, until the result is there.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from nkic.machine.clock.sources import LIKE_V3, SILENT

GENERATIONS = (2, 3, 4)


class Standing(Enum):
    """How a figure is known; docs/fidelity.md says what the words mean."""

    DOCUMENTED = "documented"
    MEASURED = "measured"
    FITTED = "fitted"
    ASSUMED = "assumed"


class Figure(NamedTuple):
    """A value, how it is known, and from where."""

    value: float
    standing: Standing
    source: str


class Parameter(NamedTuple):
    """A figure that a machine has; `figures` by generation, in the order of GENERATIONS. Values
    lie between `least` and `most`.
    """

    name: str
    unit: str
    says: str
    figures: tuple[Figure, Figure, Figure]
    least: float = 0.0
    most: float = 1e9

    def of(self, generation: int) -> Figure:
        """The figure of a generation."""
        return self.figures[GENERATIONS.index(generation)]


def documented(value: float, source: str) -> Figure:
    """A public page states it."""
    return Figure(value, Standing.DOCUMENTED, source)


def measured(value: float, source: str) -> Figure:
    """A published profile shows it."""
    return Figure(value, Standing.MEASURED, source)


def fitted(value: float, source: str) -> Figure:
    """It comes near what published profiles show."""
    return Figure(value, Standing.FITTED, source)


def assumed(value: float, source: str = SILENT) -> Figure:
    """Our choice."""
    return Figure(value, Standing.ASSUMED, source)


def row(name: str, unit: str, says: str, *figures: Figure, least: float = 0.0) -> Parameter:
    """One figure for all generations, or one each; the last generation is like the one before
    it where it is left out.
    """
    if len(figures) == 1:
        figures *= 3
    if len(figures) == 2:
        figures = (*figures, assumed(figures[1].value, LIKE_V3))
    first, second, third = figures
    return Parameter(name, unit, says, (first, second, third), least)
