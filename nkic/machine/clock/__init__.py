"""Figures of time as data: what each is, for which generation, and how far it can be trusted."""

from nkic.machine.clock.figures import Figure, Parameter, Standing
from nkic.machine.clock.table import TABLE, defaults

__all__ = ["TABLE", "Figure", "Parameter", "Standing", "defaults"]
