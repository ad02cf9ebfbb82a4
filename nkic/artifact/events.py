"""Events of a run: when each item of each stream ran, and what it waited for.

All times are picoseconds of simulated time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from nkic.artifact.records import Executable, InstructionRecord, StreamRecord
from nkic.machine.targets import Engine, Target
from nkic.machine.timing import Timing


class Cause(Enum):
    """The reason an item became ready when it did."""

    START = "start"  # none: the first item of a stream, without waits
    ENGINE = "engine"  # the previous item still occupied its engine or queue
    RESULT = "result"  # the result of the previous item in the same stream
    SEMAPHORE = "semaphore"  # a signal from another stream
    TRIGGER = "trigger"  # the engine that triggers it was busy
    ACCESS = "access"  # another engine accessed a memory that only one may access at a time
    RENDEZVOUS = "rendezvous"  # another core reached the rendezvous later
    OTHER = "other"  # none of these: a rule that the recorder does not know

    __hash__ = object.__hash__


class Event(NamedTuple):
    """One execution of an item. `stream` and the events are indices into the trace's lists.

    `idle` is when the stream became free for it; triggers of transfers delay this, too. It was
    `ready` when its waits were met; `before` is the event that met the last of them (-1: none), and
    `cause` the kind of wait. A transfer is triggered at `ready`, but its data moves from `start`
    on, which is later if its ring or the DMA engines were busy, with `pool_before` the event that
    occupied them. It occupied its stream, or the DMA engines for a transfer, until `free`, `table`
    of that time for loading an activation table, and was complete at `done`. `pool` is its time on
    all of the core's DMA engines together, `bytes` the size that it moved. `tokens` are the events
    whose signals it waited for, `iterations` the iterations of the enclosing device loops,
    outermost first. The trigger of a transfer occupied the engine `triggered_by` for `trigger`
    from `ready` on; for the first `trigger_overlap` of it, that engine was busy with its own work.
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
    triggered_by: Engine = Engine.DMA
    trigger_overlap: int = 0

    @property
    def trigger_hold(self) -> int:
        """The time for which only the trigger kept its engine busy."""
        return self.trigger - self.trigger_overlap

    @property
    def is_late(self) -> bool:
        """Whether other transfers occupied its ring or the DMA engines when it was ready."""
        return self.start > self.ready


@dataclass(frozen=True)
class Trace:
    """The events of one rank in order of execution: each follows all events that it waits for.

    `target` has the figures used. `end` is when the last event was complete. `complete` is False if
    the run had more events than were kept.
    """

    executable: Executable
    target: Target
    streams: tuple[StreamRecord, ...]
    events: tuple[Event, ...]
    end: int
    complete: bool = True

    def waited_for_trigger(self, after: Event) -> bool:
        """Return whether the last wait of `after` was for an engine busy with a trigger."""
        if after.before < 0 or after.cause not in (Cause.ENGINE, Cause.TRIGGER):
            return False
        before = self.events[after.before]
        is_other = after.cause is Cause.TRIGGER or before.stream != after.stream
        return is_other and self.streams[before.stream].engine is Engine.DMA

    def released_at(self, after: Event) -> int:
        """Return when the event before `after` released it."""
        before = self.events[after.before]
        if self.waited_for_trigger(after):
            return before.ready + before.trigger
        is_hold = after.cause in (Cause.ENGINE, Cause.TRIGGER)
        return before.free if is_hold else before.done


# ---- Hypothetical changes to a run --------------------------------------------------------------


@dataclass(frozen=True)
class Change:
    """A change under which a run is simulated again.

    `retimed` returns an event's timing, given its number, the event, and its original timing. With
    `tables` off, the scalar engine has all activation tables at once. `wires` replaces the
    program's semaphores by pairs of events (signalling, waiting). `moved` has the events that other
    streams run, of these or of the trace, by index.
    """

    retimed: Callable[[int, Event, Timing], Timing] | None = None
    tables: bool = True
    wires: Sequence[tuple[int, int]] | None = None
    moved: Mapping[int, int] = field(default_factory=dict)
    streams: Sequence[StreamRecord] = ()
