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


class Part(NamedTuple):
    """A part of the path, in picoseconds. That of a signal belongs to the event that waited."""

    event: int
    spent: Spent
    start: int
    end: int

    @property
    def time(self) -> int:
        return self.end - self.start


def critical_path(trace: Trace) -> list[Part]:
    """Return the path from start to end; its parts are contiguous."""
    return [*reversed([*_backwards(trace)])] if trace.events else []


def _backwards(trace: Trace) -> Iterator[Part]:
    events, until = trace.events, trace.end
    at = next(i for i, event in enumerate(events) if event.done == trace.end)
    triggered = False  # whether the path leaves the event through its trigger
    while at >= 0:
        event = events[at]
        if triggered:
            yield Part(at, Spent.TRIGGER, event.ready, until)
        else:
            yield from _within(at, event, until)
        if event.is_late and not triggered:
            at, until = event.pool_before, min(until, event.start)
            continue
        let_go = 0
        if event.before >= 0:
            let_go = min(trace.let_go(event), event.ready)
        if let_go < event.ready:
            yield Part(at, _GAPS.get(event.cause, Spent.SIGNAL), let_go, event.ready)
        triggered = trace.by_trigger(event)
        at, until = event.before, let_go


_GAPS = {Cause.RENDEZVOUS: Spent.RENDEZVOUS, Cause.START: Spent.START}


def _within(number: int, event: Event, until: int) -> Iterator[Part]:
    """Yield the parts of the event itself, from its start `until` another event could continue."""
    free = min(event.free, until)
    loaded = min(event.start + event.table, free)
    if until > free:
        yield Part(number, Spent.LATENCY, free, until)
    if free > loaded:
        yield Part(number, Spent.BUSY, loaded, free)
    if loaded > event.start:
        yield Part(number, Spent.TABLE, event.start, loaded)


def spending(trace: Trace, path: list[Part]) -> dict[str, int]:
    """Return the path's time by use, greatest first: "PE", "DMA transfers", "DMA latency", …"""
    found: dict[str, int] = defaultdict(int)
    for part in path:
        found[_named(trace, part)] += part.time
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def _named(trace: Trace, part: Part) -> str:
    engine = trace.streams[trace.events[part.event].stream].engine
    if part.spent is Spent.BUSY:
        return TRANSFERS if engine is Engine.DMA else SHORT_NAMES[engine]
    if part.spent is Spent.TRIGGER:
        return TRIGGERS
    if part.spent is Spent.LATENCY:
        return f"{SHORT_NAMES[engine]} latency"
    return str(part.spent.value)


TRANSFERS, TRIGGERS = "DMA transfers", "DMA triggers"
