"""Accesses to a memory that two engines of a core may not make at the same time.

Such instructions must be serialized, which the vendor's compiler sees to (Trainium/Inferentia2
architecture guide, memory hierarchy). In which order is not published. Here engines access the
memory in the order in which their instructions are ready, and an instruction starts when the other
engine's access is complete and a semaphore has signalled it (assumed).
"""

from __future__ import annotations

from typing import Protocol

from nkic.machine.engines import Engine
from nkic.machine.memory import Buffer
from nkic.machine.timing import Timing


class Timed(Protocol):
    """The stream of a compute engine. `granted` is when its next item may access memory."""

    granted: int | None


class Exclusive:
    """The last access to each memory of each core, granted or made."""

    def __init__(self, signal_ps: int) -> None:
        self.signal_ps = signal_ps
        self.last: dict[tuple[int, Buffer], tuple[Engine, int]] = {}  # its engine and its end

    def grant(
        self, stream: Timed, core: int, engine: Engine, timing: Timing, ready: int, load: int
    ) -> int:
        """Return when an item that is `ready` may start, in picoseconds. Its accesses are granted
        once; `load` is the time that the engine needs for an activation table.
        """
        if stream.granted is None:
            start = ready
            for buffer in timing.exclusive:
                last = self.last.get((core, buffer))
                if last is not None and last[0] is not engine:
                    start = max(start, last[1] + self.signal_ps)
            stream.granted = start
            for buffer in timing.exclusive:
                self.last[core, buffer] = engine, start + load + timing.hold + timing.latency
        return max(ready, stream.granted)
