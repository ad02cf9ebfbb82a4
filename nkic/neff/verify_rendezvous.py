"""Verifies the rendezvous of a program's cores: the streams of one name reach the same instructions
in the same order on every core, inside loops that run equally often.

How often a loop bounded by a register runs is known at run time only; there the runner reports
a core that waits in vain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from nkic.machine.engines import Engine
from nkic.machine.targets import Target
from nkic.neff.records import Executable, InstructionRecord, LoopRecord, StreamRecord
from nkic.neff.unsound import Unsound

Outline = tuple["Stop | Round", ...]


class Stop(NamedTuple):
    """An instruction that all cores run together."""

    item: InstructionRecord


class Round(NamedTuple):
    """A loop with such instructions in it; `trips` is None where a register decides."""

    trips: int | None
    body: Outline


def verify_rendezvous(executable: Executable, target: Target) -> None:
    """Raises `Unsound` for the first rendezvous that the cores do not all reach."""
    outlines: dict[tuple[Engine, int], dict[int, Outline]] = {}
    for stream in executable.streams:
        found = _outline(stream, 0, len(stream.items))
        if found:
            outlines.setdefault((stream.engine, stream.queue), {})[stream.core] = found
    for (engine, queue), by_core in outlines.items():
        cores = [by_core.get(core, ()) for core in range(executable.cores)]
        name = StreamRecord(0, engine, queue, ()).name.removeprefix("core0.")
        _Comparison(executable, target, engine, name).bodies(cores)


def _outline(stream: StreamRecord, low: int, high: int) -> Outline:
    found: list[Stop | Round] = []
    while low < high:
        item = stream.items[low]
        low += 1
        if isinstance(item, LoopRecord):
            body = _outline(stream, low, low + item.length)
            found += [Round(item.trips, body)] if body else []
            low += item.length
        elif item.row is not None and item.row.is_rendezvous:
            found.append(Stop(item))
    return tuple(found)


class _Comparison:
    def __init__(self, executable: Executable, target: Target, engine: Engine, name: str) -> None:
        self.executable = executable
        self.target = target
        self.engine = engine
        self.name = name

    def bodies(self, cores: Sequence[Outline]) -> None:
        counts = [len(outline) for outline in cores]
        if len(set(counts)) > 1:
            numbers = " and ".join(map(str, counts))
            place = next((_place(one) for outline in cores for one in outline), -1)
            raise self.wrong(f"the cores have {numbers} rendezvous, one after the other", place)
        for items in zip(*cores, strict=True):
            self.items(items)

    def items(self, items: Sequence[Stop | Round]) -> None:
        stops = [item.item for item in items if isinstance(item, Stop)]
        rounds = [item for item in items if isinstance(item, Round)]
        if len(stops) == len(items):
            self.stops(stops)
        elif len(rounds) == len(items):
            if len({one.trips for one in rounds}) > 1:
                text = "a loop around a rendezvous does not run as often on each core"
                raise self.wrong(text, _place(rounds[0]))
            self.bodies([one.body for one in rounds])
        else:
            raise self.wrong("a rendezvous is in a loop on one core alone", _place(items[0]))

    def stops(self, items: Sequence[InstructionRecord]) -> None:
        row = items[0].row
        if row is None or row.rendezvous_rule is None or any(item.row is not row for item in items):
            raise self.wrong("the instructions of a rendezvous differ", items[0].place)
        facts = [self.executable.facts(item, self.target, self.engine) for item in items]
        if violation := row.rendezvous_rule(facts):
            raise self.wrong(violation.message, items[0].place)

    def wrong(self, text: str, place: int) -> Unsound:
        return Unsound(f"{self.name}: {text}", section="code", place=place)


def _place(one: Stop | Round) -> int:
    return one.item.place if isinstance(one, Stop) else _place(one.body[0])
