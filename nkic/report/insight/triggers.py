"""Transfers that another engine could trigger, while the one that does is the bottleneck."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from nkic.machine.engines import Engine
from nkic.machine.facts import Facts
from nkic.machine.instructions.combined import TRIGGERS, in_turn
from nkic.machine.timing import Timing, timing
from nkic.report.insight.critical import Spent
from nkic.report.insight.sources import Line
from nkic.report.insight.subject import Question, Subject, timed_change
from nkic.trace import Event

MOST_LINES = 2  # lines whose transfers are tried
MOST_HELD = 0.6  # share of all triggers from which a line is shared between engines


def triggers(subject: Subject) -> Iterator[Question]:
    """Ask about triggering the transfers of one line from another engine, if triggers take a part
    of the critical path.

    Only one line's, since all of them would make the other engine the bottleneck instead.
    """
    weight = sum(segment.time for segment in subject.path if segment.spent is Spent.TRIGGER)
    if not weight:
        return
    by_line: dict[Line, list[int]] = defaultdict(list)
    held: dict[Line, int] = defaultdict(int)
    for number, event in subject.transfers():
        line = subject.line(event)
        by_line[line].append(number)
        held[line] += event.trigger
    for line in sorted(held, key=lambda each: (-held[each], each))[:MOST_LINES]:
        for engine, attributes, added in TRIGGERS:
            timings = _triggered(subject, by_line[line], attributes)
            if timings:
                text = f"trigger {line.short} from the {engine} engine: add `{added}`"
                name, change = f"trigger-{engine}:{line}", timed_change(timings)
                yield Question(name, text, change, True, weight, line, adds=added)
        if held[line] > MOST_HELD * sum(held.values()):
            yield from _in_turn(subject, line, by_line[line], weight)


def _in_turn(subject: Subject, line: Line, numbers: list[int], weight: int) -> Iterator[Question]:
    """Ask about triggering every second transfer of a line from the scalar engine."""
    loops = [subject.iterations(subject.trace.events[number]) for number in numbers]
    name = next(reversed(loops[0]), "")
    values = sorted({loop[name] for loop in loops if name in loop})
    if len(values) < MOST_LINES:
        return
    step = values[1] - values[0]
    odd = [n for n, loop in zip(numbers, loops, strict=True) if loop.get(name, 0) // step % 2]
    timings = _triggered(subject, odd, TRIGGERS[0][1])
    if not timings:
        return
    counter = f"{name} // {step}" if step > 1 else name
    added = in_turn(counter)
    text = f"trigger {line.short} from the scalar and the sync engine in turn: add `{added}`"
    name, change = f"trigger-in-turn:{line}", timed_change(timings)
    yield Question(name, text, change, True, weight, line, adds=added)


def _triggered(
    subject: Subject, numbers: list[int], attributes: dict[str, str]
) -> dict[int, Timing] | None:
    """Return the timings of transfers with these attributes; None if a rule forbids one of them, or
    if nothing changes.
    """
    known: dict[tuple[int, int], Timing | None] = {}
    timings: dict[int, Timing] = {}
    for number in numbers:
        event = subject.trace.events[number]
        key = (id(event.record), event.stream)
        if key not in known:
            known[key] = _changed(subject, event, attributes)
        changed = known[key]
        if changed is None:
            return None
        timings[number] = changed
    return timings


def _changed(subject: Subject, event: Event, attributes: dict[str, str]) -> Timing | None:
    row = event.record.row
    assert row is not None
    if not attributes.keys() <= row.attribute_index.keys():
        return None
    facts = subject.trace.executable.facts(event.record, subject.trace.target, Engine.DMA)
    changed = {**facts.attributes, **attributes}
    facts = Facts(facts.target, facts.operands, changed, facts.engine)
    if any(rule(facts) is not None for rule in row.rules):
        return None
    found = timing(row, facts, Engine.DMA, subject.trace.streams[event.stream].queue)
    return found if found.by is not event.triggered_by else None
