"""Verification of rendezvous between the cores of a program.

On every core, the streams of one name must reach the same rendezvous in the same order, inside
loops with equal trip counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from nkic.machine.engines import Engine
from nkic.machine.operands import Violation
from nkic.machine.rendezvous import Outline, Round, Step, Stop, compare
from nkic.machine.targets import Target
from nkic.neff.columns import Columns, Head
from nkic.neff.records import Executable, InstructionRecord, LoopRecord, Record, StreamRecord
from nkic.neff.verify.unsound import Unsound


def has_rendezvous(columns: Columns) -> bool:
    """Return whether some item is run by all cores together."""
    heads = {head for items in columns.streams for head in items.heads if type(head) is Head}
    return any(head.row is not None and head.row.is_rendezvous for head in heads)


def verify_rendezvous(executable: Executable, target: Target) -> None:
    """Raise `Unsound` for the first rendezvous that not all cores reach."""
    outlines: dict[tuple[Engine, int], dict[int, Outline[Record]]] = {}
    for stream in executable.streams:
        if outline := _outline(stream, 0, len(stream.items)):
            outlines.setdefault((stream.engine, stream.queue), {})[stream.core] = outline
    for (engine, queue), by_core in outlines.items():
        cores = [by_core.get(core, ()) for core in range(executable.cores)]
        if mismatch := compare(cores, partial(_judge, executable, target, engine)):
            name = StreamRecord(0, engine, queue, ()).name.removeprefix("core0.")
            place = _place(mismatch.first[1])
            raise Unsound(f"{name}: {mismatch.text}", section="code", place=place)


def _outline(stream: StreamRecord, low: int, high: int) -> Outline[Record]:
    steps: list[Step[Record]] = []
    while low < high:
        item = stream.items[low]
        low += 1
        if isinstance(item, LoopRecord):
            body = _outline(stream, low, low + item.length)
            steps += [Round[Record](item, item.trips, body)] if body else []
            low += item.length
        elif item.row is not None and item.row.is_rendezvous:
            steps.append(Stop[Record](item, item.row))
    return tuple(steps)


def _judge(
    executable: Executable, target: Target, engine: Engine, stops: Sequence[Stop[Record]]
) -> Violation | None:
    items = [stop.item for stop in stops if isinstance(stop.item, InstructionRecord)]
    rule = stops[0].row.rendezvous_rule
    return rule([executable.facts(item, target, engine) for item in items]) if rule else None


def _place(step: Step[Record]) -> int:
    return step.item.place if isinstance(step, Stop) else _place(step.body[0])
