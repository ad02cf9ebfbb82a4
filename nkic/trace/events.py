"""Events of a run: when each item of each stream ran, and what it had waited for.

All times are picoseconds of simulated time.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from nkic.machine.engines import Engine
from nkic.machine.targets import Target
from nkic.neff.records import Executable, InstructionRecord, StreamRecord


class Cause(Enum):
    """What decided when an item was ready to start."""

    START = "start"  # nothing: the first item of a stream that waits for nobody
    ENGINE = "engine"  # its engine or queue still held the item before
    RESULT = "result"  # it needs the result of the item before, in the same stream
    SEMAPHORE = "semaphore"  # a signal of another stream
    TRIGGER = "trigger"  # the engine that triggers it was busy
    ACCESS = "access"  # another engine accessed a memory that both may not access at once
    RENDEZVOUS = "rendezvous"  # another core came later to what all run together
    OTHER = "other"  # none of these: the recorder does not know the machine's rule

    __hash__ = object.__hash__


class Event(NamedTuple):
    """One execution of an item. `stream` and the events are indices into the trace's lists.

    The stream was free for it at `idle`, which triggers of transfers put off, too. It was `ready`
    when its waits were met, of which `before` came last for the reason `cause` (-1: none). A
    transfer is triggered then; where its ring or the DMA engines were busy, its data moved later,
    from `start` on, after those of `pool_before`. It held its stream, a transfer the DMA engines,
    until `free`, of which `table` went into loading an activation table, and was
    complete at `done`. `pool` is the time that it took of all the core's DMA engines together,
    `bytes` what it moved. `tokens` are the events that signalled what it waited for, `turns` the
    iterations of the device loops around it, outermost first. The engine `by` was busy with the
    trigger of a transfer for `trigger` from `ready` on; for the first `beside` of it with work
    of its own, too.
    """

    stream: int
    record: InstructionRecord
    idle: int
    ready: int
    start: int
    free: int
    done: int
    cause: Cause
    before: int
    pool_before: int
    pool: int
    table: int
    bytes: int
    tokens: tuple[int, ...]
    iterations: tuple[int, ...]
    trigger: int = 0
    by: Engine = Engine.DMA
    beside: int = 0

    @property
    def held(self) -> int:
        """How long the trigger alone kept its engine busy."""
        return self.trigger - self.beside

    @property
    def is_late(self) -> bool:
        """It was ready, but other transfers had its ring or the DMA engines."""
        return self.start > self.ready


@dataclass(frozen=True)
class Trace:
    """The events of one rank, in the order in which they were executed: what an event waits for
    comes before it. `target` has the figures that held. `end` is when the last event was complete.
    `complete` is False if the run had more events than were kept.
    """

    executable: Executable
    target: Target
    streams: tuple[StreamRecord, ...]
    events: tuple[Event, ...]
    end: int
    complete: bool = True

    def by_trigger(self, after: Event) -> bool:
        """What `after` waited for last was an engine that was busy with a trigger."""
        if after.before < 0 or after.cause not in (Cause.ENGINE, Cause.TRIGGER):
            return False
        before = self.events[after.before]
        is_other = after.cause is Cause.TRIGGER or before.stream != after.stream
        return is_other and self.streams[before.stream].engine is Engine.DMA

    def let_go(self, after: Event) -> int:
        """When the event before `after` let go what `after` waited for."""
        before = self.events[after.before]
        if self.by_trigger(after):
            return before.ready + before.trigger
        is_hold = after.cause in (Cause.ENGINE, Cause.TRIGGER)
        return before.free if is_hold else before.done
