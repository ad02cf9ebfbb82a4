"""emit: Schedule → Executable.

Tensors, source places and files become indices into tables; unused tensors are omitted. This stage
makes no decisions: addresses, streams and semaphores come from the schedule.
"""

from nkic.emit.stage import emit

__all__ = ["emit"]
