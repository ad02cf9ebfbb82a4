"""trace: the events of a simulated run. `simulate` writes them, `report` reads them."""

from nkic.trace.change import Change
from nkic.trace.events import Cause, Event, Trace

__all__ = ["Cause", "Change", "Event", "Trace"]
