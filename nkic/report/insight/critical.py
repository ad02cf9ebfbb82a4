"""The critical path of a run: the chain of events without gaps from start to end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from nkic.machine.engines import SHORT_NAMES, Engine
from nkic.trace import Cause, Event, Trace


class Spent(Enum):
    """The use of a part of the path."""

    BUSY = "busy"  # an engine or the DMA engines held by the event
    LATENCY = "latency"  # until its result is visible
    TABLE = "table load"
    TRIGGER = "trigger"  # an engine held by the trigger of a transfer
    SIGNAL = "semaphore"  # from a signal to the start of the waiting event
    RENDEZVOUS = "rendezvous"
    START = "start"

    __hash__ = object.__hash__


class Segment(NamedTuple):
    """A part of the path, in picoseconds. That of a signal belongs to the event that waited."""

    event: int
    spent: Spent
    start: int
    end: int

    @property
    def time(self) -> int:
        return self.end - self.start


def critical_path(trace: Trace) -> list[Segment]:
    """Return the path from start to end; its parts are contiguous."""
    return [*reversed([*_backwards(trace)])] if trace.events else []


def _backwards(trace: Trace) -> Iterator[Segment]:
    events, until = trace.events, trace.end
    number = next(i for i, event in enumerate(events) if event.done == trace.end)
    triggered = False  # whether the path leaves the event through its trigger
    while number >= 0:
        event = events[number]
        if triggered:
            yield Segment(number, Spent.TRIGGER, event.ready, until)
        else:
            yield from _within(number, event, until)
        if event.is_late and not triggered:
            number, until = event.pool_before, min(until, event.start)
            continue
        released = 0
        if event.before >= 0:
            released = min(trace.released_at(event), event.ready)
        if released < event.ready:
            yield Segment(number, _GAPS.get(event.cause, Spent.SIGNAL), released, event.ready)
        triggered = trace.waited_for_trigger(event)
        number, until = event.before, released


_GAPS = {Cause.RENDEZVOUS: Spent.RENDEZVOUS, Cause.START: Spent.START}


def _within(number: int, event: Event, until: int) -> Iterator[Segment]:
    """Yield the parts of the event itself, from its start `until` another event could continue."""
    free = min(event.free, until)
    loaded = min(event.start + event.table, free)
    if until > free:
        yield Segment(number, Spent.LATENCY, free, until)
    if free > loaded:
        yield Segment(number, Spent.BUSY, loaded, free)
    if loaded > event.start:
        yield Segment(number, Spent.TABLE, event.start, loaded)


def spending(trace: Trace, path: list[Segment]) -> dict[str, int]:
    """Return the path's time by use, greatest first: "PE", "DMA transfers", "DMA latency", …"""
    times: dict[str, int] = defaultdict(int)
    for segment in path:
        times[_named(trace, segment)] += segment.time
    return dict(sorted(times.items(), key=lambda pair: (-pair[1], pair[0])))


def _named(trace: Trace, segment: Segment) -> str:
    engine = trace.streams[trace.events[segment.event].stream].engine
    if segment.spent is Spent.BUSY:
        return TRANSFERS if engine is Engine.DMA else SHORT_NAMES[engine]
    if segment.spent is Spent.TRIGGER:
        return TRIGGERS
    if segment.spent is Spent.LATENCY:
        return f"{SHORT_NAMES[engine]} latency"
    return str(segment.spent.value)


TRANSFERS, TRIGGERS = "DMA transfers", "DMA triggers"
