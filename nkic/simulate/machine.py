"""The event loop with values: `machine.timing.EventLoop`, which computes each item at its start.

Collectives are rendezvous of all cores of all ranks of a group. Ranks share nothing else: each has
its own memories, streams and semaphores.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any, NamedTuple, NoReturn

from nkic.artifact.records import (
    Executable,
    InstructionRecord,
    LoopRecord,
    PatternRecord,
    source_of,
)
from nkic.base.diagnostics import Label, LimitHit, ProgramFault, make
from nkic.base.text import plural
from nkic.machine.targets import Target
from nkic.machine.timing import Call, EventLoop
from nkic.simulate import lost
from nkic.simulate.memory import Memory
from nkic.simulate.outcome import RunOptions, called_from, fault
from nkic.simulate.plans import Refused, Rendezvous, UnsetRegister
from nkic.simulate.shadow import Shadow, Unwritten
from nkic.simulate.streams import Hook, Item, Runner, nothing, unlimited

# ------------------------------------------------------------------------------------------------
# The deadlock report: the cycle of waiting streams, and cores that wait at a rendezvous.
# Each is reported with its source line.

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
    # Those at a rendezvous come first, since they are what a kernel's author knows.
    cycle.sort(key=lambda stream: not stream.item.is_rendezvous)
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
    item = runner.item
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
    missing = [r for r in partners if r.index not in lacking or lacking[r.index]]
    text = "the other core" if group is None else "the other ranks of its group"
    if any(r.item is None for r in missing) or not missing:
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


def same_instruction(executable: Executable, runners: Sequence[Runner]) -> None:
    first = {runner.core: runner for runner in reversed(runners)}
    for runner in runners:
        other, item = first[runner.core], runner.item
        other_item = other.item
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


# --------------------------------------------------------------------------------------------------

WATCH_INTERVAL = 256  # items or loop iterations between two calls of `watch`
CLOCK_CHECK_INTERVAL = 256  # items or loop iterations between two reads of the host's clock


class Rank:
    """One of the kernels that run together, and what is done beside its items.

    The first of the `hooks` begins first and ends last.
    """

    memory: Memory  # of a run with values

    def __init__(
        self, runners: list[Runner], shadow: Shadow | None = None, hooks: Sequence[Hook] = ()
    ) -> None:
        self.runners, self.shadow = runners, shadow
        self.hooks = [*hooks]


class Machine(EventLoop):
    """Runs prepared streams to their end."""

    def __init__(
        self, executable: Executable, ranks: Sequence[Rank], options: RunOptions, target: Target
    ) -> None:
        self.executable, self.ranks, self.options = executable, ranks, options
        self.runners = [runner for rank in ranks for runner in rank.runners]
        self.cores = max(executable.cores, 1)
        super().__init__(self.runners, self.cores * len(ranks), executable.semaphores, target)
        self.unwritten = Unwritten(executable, [rank.shadow for rank in ranks])
        self.iterations = 0
        self.deadline = inf
        # by stream: the operand, if any, with uninitialised bytes that it takes to a rendezvous
        self._missing: dict[int, PatternRecord | None] = {}

    def run(self) -> int:
        """Run until every stream has ended. Raises ProgramFault or LimitHit."""
        self._choose()
        try:
            super().run()
        except UnsetRegister as unset:
            place = next(r.place for r in self.runners if r.state.registers is unset.registers)
            raise fault(
                self.executable, "uninitialised-read", unset.TEXT, place, help=unset.HELP
            ) from None
        self._finish()
        return self.end

    def _choose(self) -> None:
        """Choose what is done at each item, by rank: only what was asked for."""
        ticks: list[Call] = []
        if self.options.watch is not None or self.options.timeout_s is not None:
            ticks = [self._count_iteration]
        if self.options.timeout_s is not None:
            self.deadline = time.monotonic() + float(self.options.timeout_s)
        self.begins = [(*ticks, *_overridden(rank.hooks, "begin")) for rank in self.ranks]
        self.ends = [_overridden(rank.hooks[::-1], "end") for rank in self.ranks]
        self.before = self._begin
        self.after = self._end if any(self.ends) else None
        for runner in self.runners:
            runner.on_iteration, runner.on_limit = self._count_iteration, self._iteration_limit
            runner.max_iterations = self.options.max_iterations

    def _finish(self) -> None:
        """Check that all streams have ended, and what they have left."""
        # Break the reference cycles, so that everything is freed without the collector.
        self.before = self.after = None
        self.begins = self.ends = []
        for runner in self.runners:
            runner.on_iteration, runner.on_limit = nothing, unlimited
        stuck = [r for r in self.runners if r.item is not None]
        if stuck:
            lacking = {runner.index: self.lacking(runner, runner.item) for runner in stuck}
            raise deadlock(self.executable, self.runners, lacking)
        self._check_clock()
        self.unwritten.finish()

    def _count_iteration(self, *_: object) -> None:
        self.iterations += 1
        if self.iterations % WATCH_INTERVAL == 0 and self.options.watch is not None:
            self.options.watch(sum(runner.count for runner in self.runners))
        if self.iterations % CLOCK_CHECK_INTERVAL == 0:
            self._check_clock()

    def _begin(self, runner: Runner, item: Item, start: int) -> None:
        for begin in self.begins[runner.rank]:
            begin(runner, item, start)
        if item.step is not None and not item.is_rendezvous and self.options.values:
            self._run(runner, item)
        runner.count += item.record.row is not None
        runner.bytes += item.bytes
        runner.next_index += 1

    def _end(self, runner: Runner, item: Item, start: int) -> None:
        for end in self.ends[runner.rank]:
            end(runner, item, start)

    def _run(self, runner: Runner, item: Item) -> None:
        missing = self.unwritten.read(runner, item)
        if missing is not None:
            self.unwritten.prepare(runner, item)
        for tile, window in item.windows:
            tile.window = window
        if item.step is not None:
            item.step()
        if missing is not None:
            self.unwritten.follow(runner, item, missing)
            runner.state.remarks.drop(lost.SLUGS)  # on elements without a value
        else:
            self.unwritten.note(runner, item)
        for note in item.authors:
            note()
        if (remarks := runner.state.remarks).fresh:
            remarks.settle(self.executable, item.record.place)

    # ---- a rendezvous ----

    def _meeting(self, runner: Runner, item: Item) -> tuple[object, int]:
        self._missing[runner.index] = self.unwritten.read(runner, item)
        stream = runner.engine, runner.queue
        group = item.rendezvous.group if item.rendezvous is not None else None
        if group is None:
            return (stream, runner.rank), self.cores
        ranks = len(self.ranks)
        if runner.rank not in group or max(group) >= ranks:
            raise outside_group(self.executable, item.record.place, runner.rank, group, ranks)
        return (stream, group), self.cores * len(group)

    def _exchange(self, runners: Sequence[Runner]) -> None:
        self._trade(runners)
        for number, rank in enumerate(self.ranks):
            participants = [runner for runner in runners if runner.rank == number]
            for hook in rank.hooks if participants else ():
                hook.meet(participants)

    def _trade(self, runners: Sequence[Runner]) -> None:
        """Exchange data: each core offers its own, then each accepts its part."""
        rendezvous: Rendezvous | None = runners[0].item.rendezvous
        group = rendezvous.group if rendezvous is not None else None
        if group is not None:
            same_instruction(self.executable, runners)
        offers = {}
        for runner in runners:
            item: Item = runner.item
            if item.dynamic is not None:
                item.dynamic.begin()
            for tile, window in item.windows:
                tile.window = window
            offers[runner.unit] = item.rendezvous.offer() if item.rendezvous is not None else None
        for runner in runners:
            first, core = runner.rank * self.cores, runner.core
            if group is None:
                contributions = {c: offers[first + c] for c in range(self.cores)}
            else:
                contributions = {rank: offers[rank * self.cores + core] for rank in group}
            self._accept(runner, runner.item, contributions)
        missing = [(r, r.item, self._missing[r.index]) for r in runners]
        if any(pattern is not None for _, _, pattern in missing):
            self.unwritten.exchange(missing)

    def _accept(self, runner: Runner, item: Item, contributions: Mapping[int, Any]) -> None:
        written = None
        try:
            if item.rendezvous is not None:
                written = item.rendezvous.accept(contributions)
        except Refused as refused:
            text = f"rank {runner.rank}: {refused}"
            raise fault(self.executable, "collective", text, item.record.place) from None
        if item.dynamic is not None:
            item.dynamic.end()
        if written is None:
            self.unwritten.note(runner, item)
        else:
            self.unwritten.note_part(runner, item, written)
        for note in item.authors:
            note()

    # ---- limits, and a run that cannot go on ----

    def _check_clock(self) -> None:
        if time.monotonic() <= self.deadline:
            return
        message = f"the simulation took longer than {self.options.timeout_s:g} s (`--limit time`)"
        loops = [(r.iterations[-1], r.loops[-1].record) for r in self.runners if r.loops]
        span, notes = None, []
        if loops:
            iterations, loop = max(loops, key=lambda pair: pair[0])
            span = source_of(self.executable, loop.place)
            notes = [f"this loop had run {plural(iterations, 'time')}"]
        help = "raise the limit, or drop it"
        raise LimitHit([make("time-limit", message, span, notes=notes, help=help)])

    def _iteration_limit(self, loop: LoopRecord, iterations: int) -> NoReturn:
        """Raise LimitHit for a loop with a run-time bound that does not end."""
        state = "its register is not 0 yet" if loop.condition is not None else "has not ended"
        times = plural(iterations, "time")
        message = f"this loop has run {times} and {state}: more than `--limit iterations` allows"
        diagnostic = make(
            "loop-limit",
            message,
            source_of(self.executable, loop.place),
            labels=called_from(self.executable, loop.place),
            help="let the loop's body change its condition or bound, or raise the limit",
        )
        raise LimitHit([diagnostic])

    def lacking(self, runner: Runner, item: Item) -> list[int]:
        """Return the semaphores whose signals an item still waits for."""
        tokens = self.tokens[runner.unit]
        return [semaphore for semaphore, count in item.waits if len(tokens[semaphore]) < count]


def _overridden(hooks: Sequence[Hook], name: str) -> tuple[Call, ...]:
    own = [hook for hook in hooks if getattr(type(hook), name) is not getattr(Hook, name)]
    return tuple([getattr(hook, name) for hook in own])


class CycleLimit(Hook):
    def __init__(self, executable: Executable, cycles: int, target: Target) -> None:
        self.executable, self.cycles = executable, cycles
        self.limit_ps = cycles * 1_000_000 // target.base_clock_mhz

    def end(self, runner: Runner, item: Item, start: int) -> None:
        if runner.done > self.limit_ps:
            message = f"the program runs longer than {self.cycles:,} cycles (`--limit cycles`)"
            span = source_of(self.executable, item.record.place)
            raise LimitHit([make("cycle-limit", message, span, help="raise the limit, or drop it")])
