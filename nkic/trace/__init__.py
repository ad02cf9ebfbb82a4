"""trace: what happened in a run, event by event: `simulate` writes it, `report` reads it."""

from nkic.trace.change import Change
from nkic.trace.events import Cause, Event, Trace

__all__ = ["Cause", "Change", "Event", "Trace"]
