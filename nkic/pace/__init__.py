"""The room pace: how long what is in a file takes."""

from nkic.pace.clock import Clock
from nkic.pace.walk import duration

__all__ = ["Clock", "duration"]
