"""The deadlock report: the cycle of waiting streams, and cores that wait at a rendezvous.

Each is reported with its source line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from nkic.base.diagnostics import Label, ProgramFault, make
from nkic.neff.places import source_of
from nkic.neff.records import Executable, InstructionRecord
from nkic.simulate.faults import called_from, fault
from nkic.simulate.streams import Item, Runner

MAX_NOTES = 8


class _Stuck(NamedTuple):
    """A deadlocked stream: a description of what it waits for, and the streams that it needs."""

    runner: Runner
    item: Item
    what: str
    needs: tuple[int, ...]


def deadlock(
    executable: Executable, runners: Sequence[Runner], lacking: Mapping[int, Sequence[int]]
) -> ProgramFault:
    """Return the deadlock fault.

    `lacking` maps each deadlocked stream to the semaphores that were not signalled, or to none if
    it has reached a rendezvous of the cores.
    """
    stuck = {
        i: s
        for i, runner in enumerate(runners)
        if (s := _stuck(executable, runner, runners, lacking))
    }
    cycle = [stuck[index] for index in _cycle(stuck)]
    cycle += [
        stream for stream in stuck.values() if stream.item.is_rendezvous and stream not in cycle
    ]
    cycle.sort(key=_is_not_at_rendezvous)
    first = cycle[0]
    label = "stream waits for signals" if len(stuck) == 1 else "streams wait for signals"
    notes = [_sentence(executable, stream) for stream in cycle]
    diagnostic = make(
        "deadlock",
        f"{len(stuck)} {label} that never come",
        source_of(executable, _place(first)),
        labels=list(_labels(executable, cycle)),
        notes=notes[:MAX_NOTES],
    )
    return ProgramFault([diagnostic])


def _stuck(
    executable: Executable,
    runner: Runner,
    runners: Sequence[Runner],
    lacking: Mapping[int, Sequence[int]],
) -> _Stuck | None:
    if runner.index not in lacking:
        return None
    item = runner.current()
    if item is None:
        return None
    semaphores = lacking[runner.index]
    if semaphores:
        needs = [(r, s) for r in runners if (s := _signaller(r, runner.unit, semaphores))]
        description = (
            " and ".join(_named(executable, *need) for need in needs) or "a signal that never comes"
        )
        return _Stuck(runner, item, description, tuple(r.index for r, _ in needs))
    group = item.rendezvous.group if item.rendezvous is not None else None
    partners = [r for r in runners if _same_stream(r, runner, group)]
    missing = [r for r in partners if not _has_arrived(r, lacking)]
    text = "the other core" if group is None else "the other ranks of its group"
    if any(r.current() is None for r in missing) or not missing:
        text += (
            ", which reaches no further rendezvous" if group is None else ", one of which has ended"
        )
    return _Stuck(runner, item, text, tuple(r.index for r in missing))


def _signaller(runner: Runner, unit: int, semaphores: Sequence[int]) -> InstructionRecord | None:
    """Return the stream's next instruction that signals one of these semaphores, else its last."""
    if runner.unit != unit:
        return None
    signallers = [
        (index, item)
        for index, item in enumerate(runner.record.items)
        if isinstance(item, InstructionRecord) and not {*semaphores}.isdisjoint(item.signals)
    ]
    later = [item for index, item in signallers if index >= runner.next_index]
    return later[0] if later else signallers[-1][1] if signallers else None


def _named(executable: Executable, runner: Runner, item: InstructionRecord) -> str:
    """Return the name of the instruction that does not signal, with its line."""
    span = source_of(executable, item.place)
    name = item.row.name if item.row is not None else "a signal"
    return f"{name} of {runner.name}" + (f" ({span})" if span else "")


def _same_stream(one: Runner, other: Runner, group: tuple[int, ...] | None) -> bool:
    """Return whether `one` is a partner of `other` at a rendezvous, by rank or by group."""
    record, others = one.record, other.record
    partner = one.rank == other.rank if group is None else one.rank in group
    same = (record.engine, record.queue) == (others.engine, others.queue)
    return partner and same and one is not other


def _has_arrived(runner: Runner, lacking: Mapping[int, Sequence[int]]) -> bool:
    return runner.index in lacking and not lacking[runner.index]


def _cycle(stuck: Mapping[int, _Stuck]) -> list[int]:
    """Return a cycle of streams, each of which waits for the next.

    If the cause is a stream that has ended, return the path to it.
    """
    path: list[int] = []
    index = next(iter(stuck))
    while index not in path:
        path.append(index)
        next_streams = [need for need in stuck[index].needs if need in stuck]
        if not next_streams:
            return path
        index = next_streams[0]
    return path[path.index(index) :]


def _is_not_at_rendezvous(stuck: _Stuck) -> bool:
    """Sort key: streams at a rendezvous first, since they are what a kernel's author knows."""
    return not stuck.item.is_rendezvous


def _place(stuck: _Stuck) -> int:
    """Return the place of its instruction; for an empty slot, of the next one in the stream."""
    items = stuck.runner.record.items
    places = [stuck.item.record.place]
    places += [
        i.place for i in items[stuck.runner.next_index :] if isinstance(i, InstructionRecord)
    ]
    return next((place for place in places if place >= 0), -1)


def _labels(executable: Executable, cycle: Sequence[_Stuck]) -> Iterator[Label]:
    """Yield labels for the other places, and for the calls that led to the first."""
    seen = {source_of(executable, _place(cycle[0]))}
    for stuck in cycle[1:]:
        span = source_of(executable, _place(stuck))
        if span is not None and span not in seen:
            seen.add(span)
            yield Label(span, f"{stuck.runner.name} waits here")
    yield from called_from(executable, _place(cycle[0]))


def _sentence(executable: Executable, stuck: _Stuck) -> str:
    row = stuck.item.record.row
    span = source_of(executable, _place(stuck))
    instruction = ", ".join(
        str(word) for word in (row.name if row is not None else "", span) if word
    )
    at = f", at {instruction}," if instruction else ""
    return f"{stuck.runner.name}{at} waits for {stuck.what}"


# ---- invalid collectives ----------------------------------------------------------------------


def outside_group(
    executable: Executable, place: int, rank: int, group: Sequence[int], ranks: int
) -> ProgramFault:
    """Return the fault of `rank` for a collective whose group excludes it or has missing ranks."""
    if rank in group:
        text = f"the collective is for the ranks {_listed(group)}, and {ranks} are run"
        help = f"run {max(group) + 1} ranks: `nki-run --ranks`, `kernel.ranks(...)` in Python"
        return fault(executable, "collective", text, place, help=help)
    text = f"rank {rank} is in no group of this collective"
    return fault(executable, "collective", text, place, help="name every rank in replica_group")


def same_instruction(executable: Executable, arrivals: Sequence[tuple[Runner, Item]]) -> None:
    """Raise unless every rank has reached the same instruction."""
    first = {runner.core: (runner, item) for runner, item in reversed(arrivals)}
    for runner, item in arrivals:
        other, other_item = first[runner.core]
        if item.record is not other_item.record:
            name, other_name = _row_name(item), _row_name(other_item)
            text = f"rank {other.rank} reaches {other_name} here, "
            text += f"but rank {runner.rank} reaches {name}"
            error = fault(executable, "collective", text, other_item.record.place)
            span = source_of(executable, item.record.place)
            labels = [Label(span, f"rank {runner.rank} is here")] if span is not None else []
            (one,) = error.diagnostics
            raise ProgramFault([replace(one, labels=(*labels, *one.labels))])


def _row_name(item: Item) -> str:
    return item.record.row.name if item.record.row is not None else "nothing"


def _listed(group: Sequence[int]) -> str:
    return ", ".join(map(str, group)) if len(group) <= 8 else f"{group[0]} to {max(group)}"
