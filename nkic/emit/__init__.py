"""emit: Schedule → Executable.

Tensors, source places and files become indices into tables; tensors that nothing touches are
left out. Nothing is decided here: addresses, streams and semaphores come from the schedule.
"""

from nkic.emit.stage import emit

__all__ = ["emit"]
