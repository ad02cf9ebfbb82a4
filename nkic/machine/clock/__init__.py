"""Timing figures as data: meaning, value per generation, and how each is known."""

from nkic.machine.clock.figures import Figure, Parameter, Standing
from nkic.machine.clock.table import TABLE, defaults

__all__ = ["TABLE", "Figure", "Parameter", "Standing", "defaults"]
