"""The time that the program of a file takes."""

from nkic.pace.clock import Clock
from nkic.pace.walk import duration, items

__all__ = ["Clock", "duration", "items"]
