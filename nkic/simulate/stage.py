"""Runs a verified executable, and runs it again where its order is known."""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.artifact.records import Executable, InstructionRecord, PatternRecord
from nkic.base.collector import without_collector
from nkic.base.diagnostics import LimitHit, ProgramFault
from nkic.machine.codecs import storage
from nkic.simulate.beside import Follower
from nkic.simulate.bounds import Bounds
from nkic.simulate.dynamic import is_dynamic
from nkic.simulate.machine import WATCH_INTERVAL, CycleLimit, Machine, Rank
from nkic.simulate.memory import Compact, Contents, Memory
from nkic.simulate.numerics import quiet
from nkic.simulate.numerics.matmul import blas_threads
from nkic.simulate.observed import Observed, Observer, Scene, Tensors
from nkic.simulate.outcome import Prints, Remark, Remarks, RunOptions
from nkic.simulate.plans import Decoder, EngineState, Step, Window
from nkic.simulate.races import RaceDetector
from nkic.simulate.result import Busy, EngineUse, Recorder, Result, recorded
from nkic.simulate.shadow import Shadow, never_written
from nkic.simulate.streams import Hook, Item, Runner, prepare
from nkic.simulate.tile import Tile

# ---- Runs of a program whose order is known: only the values are computed -----------------------
# A process that runs an executable again with the same options keeps the steps of its order,
# together with the memories that they work on; later runs repeat the steps on other inputs, and
# repeat the remarks on values.
#
# The event loop is still used for programs with registers, device loops, collectives or run-time
# offsets; for programs that read partly uninitialised bytes or end in a fault; and for runs under
# observation or with a time limit. Memories larger than `MAX_BYTES` are not kept.

# ---- The order in which a program's items run, found without computing values -------------------
# If no value decides which items run, or at which addresses, the event loop needs no values: the
# interleaving of the streams, the total time, and whether reads find initialised bytes are the
# same for all inputs. A run of such a program has two phases: `Order`, and then the steps in the
# order that it found.

# One executed item, or the items of all cores at a rendezvous; and the remarks on its place in the
# order, which do not depend on values.
Executed = tuple[tuple[Item, ...], tuple[Remark, ...]]


class NotFixed(Exception):
    """Values affect what is run."""


def may_be_fixed(executable: Executable) -> bool:
    """Return whether the records show that no value decides what is run, or at which addresses.

    This is so without registers, device loops and run-time offsets.
    """
    if executable.registers:
        return False
    items = (item for stream in executable.streams for item in stream.items)
    return all(type(item) is InstructionRecord and not is_dynamic(item) for item in items)


def has_collectives(runners: Sequence[Runner]) -> bool:
    items = [item for runner in runners for item in runner.items]
    return any(
        isinstance(item, Item) and item.rendezvous is not None and item.rendezvous.group is not None
        for item in items
    )


class Order(Machine):
    """Advance simulated time, check reads, and record the order in `ran`.

    Raises `NotFixed` if an item reads partly uninitialised bytes, since the effect depends on
    values.
    """

    def __init__(self, *facts: Any) -> None:
        super().__init__(*facts)
        self.ran: list[Executed] = []
        (self.shadow,) = self.unwritten.shadows
        self.slots = self.shadow.memory.slots if self.shadow is not None else []
        self.holders = [*range(len(self.executable.tensors))]  # the tensor in each slot

    def _run(self, runner: Runner, item: Item) -> None:
        if self.shadow is not None:
            self._check(self.shadow, item, item.reads)
        remarks = self._author_remarks(runner, item) if item.authors else ()
        if item.work is not None or remarks:
            self.ran.append(((item,), remarks))

    def _check(self, shadow: Shadow, item: Item, reads: tuple[int, ...]) -> None:
        """Check that the item reads initialised bytes, and mark those that it writes."""
        operands, is_initialised = item.record.operands, shadow.is_initialised
        for i in reads:
            pattern: PatternRecord = operands[i]  # type: ignore[assignment]
            if not is_initialised[pattern.tensor] and not shadow.is_written(pattern):
                raise NotFixed
        for i in item.writes:
            written: PatternRecord = operands[i]  # type: ignore[assignment]
            tensor = written.tensor
            if is_initialised[tensor]:
                continue
            slot = self.slots[tensor]
            if slot is None:
                shadow.note(written)
            else:
                is_initialised[self.holders[slot]] = False
                self.holders[slot], is_initialised[tensor] = tensor, True

    def _trade(self, runners: Sequence[Runner]) -> None:
        if any(self._missing[runner.index] is not None for runner in runners):
            raise NotFixed
        remarks: list[Remark] = []
        for runner in runners:
            if self.shadow is not None:
                self._check(self.shadow, runner.item, ())
            remarks += self._author_remarks(runner, runner.item)
        self.ran.append((tuple([runner.item for runner in runners]), tuple(remarks)))

    @staticmethod
    def _author_remarks(runner: Runner, item: Item) -> tuple[Remark, ...]:
        """Return the remarks of the recorders of PSUM writers."""
        for note in item.authors:
            note()
        fresh = runner.state.remarks.fresh
        remarks = tuple(fresh)
        fresh.clear()
        return remarks


# --------------------------------------------------------------------------------------------------

MAX_PROGRAMS = 8  # programs that are kept
MAX_BYTES = 256 << 20  # total size of the memories that are kept
Owned = Sequence[tuple[Tile, Window]]
Borrowed = Sequence[tuple[Tile, PatternRecord]]
Watch = Callable[[int], object]


def with_values(
    passed: Result,
    executable: Executable,
    memory: Memory,
    prints: Prints,
    remarks: Remarks,
    rounded: bool,
) -> Result:
    """Return `passed`, the value-independent result, completed with the values of the run."""
    return replace(
        passed,
        outputs={p.name: memory.contents_of(p.tensor, rounded) for p in executable.outputs},
        printed=tuple(prints.kept),
        prints_left_out=prints.left_out,
        remarks=(*remarks.diagnostics(executable), *passed.remarks),
    )


# A step, its tiles over owned memory, and its tiles over borrowed memory; then the remarks on its
# place in the order, and its place in the source.
_Action = tuple[Step, Owned, Borrowed, tuple[Remark, ...], int]


class Rerun:
    """Computes the values of a program any number of times."""

    def __init__(self, order: Order, prints: Prints, remarks: Remarks, result: Result) -> None:
        """`result` has what is the same in all runs."""
        self.executable, self.memory = order.executable, order.ranks[0].memory
        self.prints, self.remarks, self.result = prints, remarks, result
        self.states: list[EngineState] = [runner.state for runner in order.runners]
        self.compact = Compact(self.memory)
        self.actions = _actions(self.compact, order.ran)
        lent = [action[2] for action in self.actions if action[2]]
        self.borrowed_tiles = {tile for borrowed in lent for tile, _ in borrowed}
        self.bytes = 0  # of all memories that are kept; set after the first run
        self.is_new = True  # the memory still has the decoded inputs of the first run

    def run(self, contents: Contents, rounded: bool, watch: Watch | None = None) -> Result:
        self._begin(contents)
        for first in range(0, len(self.actions), WATCH_INTERVAL):
            actions = self.actions[first : first + WATCH_INTERVAL]
            self._step(actions)
            if watch is not None:  # scaled, since some instructions have no step
                watch((first + len(actions)) * self.result.instructions // len(self.actions))
        result = with_values(
            self.result, self.executable, self.memory, self.prints, self.remarks, rounded
        )
        # the caller's arrays, which must not be held between runs
        self.memory.give_back()
        self.bytes = self.bytes or self.memory.bytes + self.compact.bytes
        for tile in self.borrowed_tiles:
            del tile.window
        return result

    def _begin(self, contents: Contents) -> None:
        is_all_written = not self.result.remarks  # those on uninitialised outputs
        self.memory.lend(contents, is_all_written)
        if self.is_new:
            self.is_new = False
            return
        self.memory.refill(contents)
        self.remarks.clear()
        self.prints.clear()
        for state in self.states:
            state.reset()

    def _step(self, actions: Sequence[_Action]) -> None:
        window, remarks = self.memory.window, self.remarks
        for step, owned, borrowed, remarks_here, place in actions:
            for tile, owned_window in owned:
                tile.window = owned_window
            for tile, pattern in borrowed:
                tile.window = window(pattern, tile.form)
            step()
            if remarks.fresh or remarks_here:
                remarks.fresh += remarks_here
                remarks.settle(self.executable, place)


def _actions(compact: Compact, ran: Sequence[Executed]) -> list[_Action]:
    """Return the executed steps over memory that is reserved while it is in use."""
    last = {
        operand.tensor: number
        for number, (items, _) in enumerate(ran)
        for item in items
        for operand in item.operands
        if type(operand) is PatternRecord
    }
    last_used: dict[int, list[int]] = defaultdict(list)  # tensors, by the index of their last use
    for tensor, number in last.items():
        last_used[number].append(tensor)
    actions: list[_Action] = []
    windows: dict[int, Window | None] = {}  # by identity of the pattern
    for number, (items, remarks) in enumerate(ran):
        owned: list[tuple[Tile, Window]] = []
        borrowed: Borrowed = ()
        for item in items:
            operands = item.operands
            for index, tile in item.work.tiles if item.work is not None else ():
                pattern: PatternRecord = operands[index]  # type: ignore[assignment]
                key = id(pattern)
                if key in windows:
                    window = windows[key]
                else:
                    window = windows[key] = compact.window(pattern, tile.form)
                if window is None:
                    borrowed = (*borrowed, (tile, pattern))
                else:
                    owned.append((tile, window))
        actions.append((_step(items), owned, borrowed, remarks, items[0].record.place))
        if number in last_used:
            for tensor in last_used[number]:
                compact.release(tensor)
    return actions


def _step(items: Sequence[Item]) -> Step:
    """Return the step of an item or, at a rendezvous, the exchange between the cores."""
    first, *_ = items
    if first.rendezvous is None and first.step is not None:
        return first.step
    parts = [item.rendezvous for item in items if item.rendezvous is not None]

    def exchange() -> None:
        contributions = {core: rendezvous.offer() for core, rendezvous in enumerate(parts)}
        for rendezvous in parts:
            rendezvous.accept(contributions)

    return exchange


# ---- programs that have run


@dataclass
class CachedProgram:
    """A program that has run in this process, with these options."""

    program: weakref.ref[Executable]
    options: RunOptions
    rerun: Rerun | None = None
    is_fixed: bool = True  # until it is found to depend on values


_cache: list[CachedProgram] = []  # the most recent last, without those that are running


def may_repeat(options: RunOptions) -> bool:
    """Return whether runs with these options may be repeated without the event loop."""
    observed = options.check_races or options.report_bounds
    return options.check_init and options.values and options.timeout_s is None and not observed


def take(executable: Executable, options: RunOptions) -> CachedProgram:
    """Take the entry of a program out of the cache; it is exclusive until it is put back."""
    options = replace(options, watch=None)
    for entry in [*_cache]:
        if entry.program() is executable and entry.options == options:
            with suppress(ValueError):  # another thread has just taken it
                _cache.remove(entry)
                return entry
    return CachedProgram(weakref.ref(executable), options)


def put(entry: CachedProgram) -> None:
    if entry.rerun is not None and entry.rerun.bytes > MAX_BYTES:
        entry.rerun = None
    _cache.append(entry)
    while len(_cache) > MAX_PROGRAMS or _bytes() > MAX_BYTES:
        with suppress(IndexError):
            _cache.pop(0)


def _bytes() -> int:
    return sum([entry.rerun.bytes for entry in [*_cache] if entry.rerun is not None])


# ---- The stage ----------------------------------------------------------------------------------

Arrays = Mapping[str, NDArray[np.generic]]


def simulate(executable: Executable, inputs: Arrays, options: RunOptions | None = None) -> Result:
    """Run `executable` on `inputs`, which the caller has matched to the signature.

    Arrays are in the storage type of their element type, C-contiguous, in the signature's shape; so
    are the outputs. Raises ProgramFault and LimitHit.
    """
    return simulate_ranks(executable, [inputs], options)[0]


def simulate_ranks(
    executable: Executable,
    inputs: Sequence[Arrays],
    options: RunOptions | None = None,
    observers: Sequence[Observer] = (),
    follow: Callable[[Memory], Follower] | None = None,
    loop: Callable[..., Machine] = Machine,
) -> list[Result]:
    """Run `executable` once for each of `inputs`, concurrently, as ranks 0, 1, …

    Ranks exchange data by collectives alone. The times in every result are those of all ranks
    together, its counts those of its own rank. `observers` are told of every item. `follow` makes
    what follows the values of a rank. `loop` makes the event loop. Otherwise as `simulate`.
    """
    run_options = options or RunOptions()
    if executable.cores == 1:  # no other core can race with it
        run_options = replace(run_options, check_races=False)
    is_plain = not observers and follow is None and loop is Machine
    with without_collector(), blas_threads(run_options.threads), quiet():
        if is_plain and len(inputs) == 1 and may_repeat(run_options):
            return [_repeatable(executable, inputs[0], run_options)]
        ranks = [
            _Rank(executable, arrays, run_options, number, watched=not is_plain)
            for number, arrays in enumerate(inputs)
        ]
        return _run(ranks, observers, follow, loop)


def _repeatable(executable: Executable, inputs: Arrays, options: RunOptions) -> Result:
    """Run the program, repeating an earlier run or preparing for a repetition."""
    entry = take(executable, options)
    if entry.is_fixed and entry.rerun is None:
        entry.rerun = _ordered(executable, inputs, replace(options, watch=None))
        entry.is_fixed = entry.rerun is not None
    if entry.rerun is not None:
        contents = _contents(executable, inputs)
        result = entry.rerun.run(contents, options.precise, options.watch)
    else:
        (result,) = _run([_Rank(executable, inputs, options, 0)])
    put(entry)
    return result


class _Rank(Rank):
    """A rank with its memory, and what is kept of its run."""

    def __init__(
        self,
        executable: Executable,
        inputs: Arrays,
        options: RunOptions,
        rank: int,
        watched: bool = False,  # memory is observed before the end
        separate: bool = False,
    ) -> None:
        self.executable, self.options = executable, options
        self.target = target = options.target_of(executable)
        contents = _contents(executable, inputs)
        in_place = options.copies_less and not watched
        self.memory = Memory(executable, contents, in_place, separate)
        races = options.check_races
        shadow = Shadow(executable, self.memory) if options.check_init or races else None
        checked = shadow if options.check_init else None
        if checked is not None:
            for number in contents:
                checked.fill(number)
        decoder = Decoder(self.memory, target, options.precise, options.accumulate)
        self.prints, self.remarks = Prints(), Remarks()
        runners = prepare(decoder, checked, self.prints, rank, self.remarks)
        super().__init__(runners, checked)
        self.recorder = self.bounds = None
        if options.trace:
            self.recorder = Recorder(executable, target, runners, options.trace)
            self.hooks.append(self.recorder)
        if options.max_cycles is not None:
            self.hooks.append(CycleLimit(executable, options.max_cycles, target))
        if races and shadow is not None:
            self.hooks.append(RaceDetector(executable, target, runners, shadow))
        if options.report_bounds:
            self.bounds = Bounds(executable, self.memory, target)
            self.hooks += [self.bounds] if options.values else []

    def result(self, machine: Machine, timeline: tuple[Busy, ...]) -> Result:
        e, bounds, passed = self.executable, self.bounds, self.passed(machine, timeline)
        return replace(
            with_values(passed, e, self.memory, self.prints, self.remarks, self.options.precise),
            bounds={p.name: bounds.of_output(p.tensor) for p in e.outputs} if bounds else None,
            uncovered=bounds.uncovered if bounds else {},
        )

    def passed(self, machine: Machine, timeline: tuple[Busy, ...]) -> Result:
        """Return a result without values: times, and remarks on uninitialised outputs."""
        uses: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for runner in self.runners:
            name = f"core{runner.core}.{runner.engine.value}"
            uses[name][0] += runner.busy
            uses[name][1] += runner.count
        cores = {runner.unit: runner.core for runner in self.runners}
        for (unit, engine), busy in machine.rings.held.items():
            if unit in cores:
                uses[f"core{cores[unit]}.{engine.value}"][0] += busy
        unwritten = never_written(self.executable, self.shadow) if self.shadow is not None else []
        return Result(
            {},
            machine.end / 1000,
            -(-machine.end * self.target.base_clock_mhz // 1_000_000),
            {name: EngineUse(busy / 1000, count) for name, (busy, count) in sorted(uses.items())},
            sum(runner.bytes for runner in self.runners),
            sum(runner.count for runner in self.runners),
            remarks=tuple(unwritten),
            timeline=timeline,
            recorded=recorded(self.recorder, machine.end) if self.recorder else None,
        )


class _Timeline(Hook):
    """The times of the first instructions to start, on all ranks."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.kept: list[tuple[int, Busy]] = []  # by rank

    def end(self, runner: Runner, item: Item, start: int) -> None:
        if len(self.kept) < self.limit and item.record.row is not None:
            end, (hold, latency, lead, *_) = runner.free, item.timing
            if runner.is_dma:
                start, end = runner.moved - hold, runner.moved + lead + latency
            self.kept.append((runner.rank, Busy(runner.record.name, item.record, start, end)))

    def of(self, rank: int) -> tuple[Busy, ...]:
        return tuple(sorted((b for r, b in self.kept if r == rank), key=lambda busy: busy.start))


def _run(
    ranks: Sequence[_Rank],
    observers: Sequence[Observer] = (),
    follow: Callable[[Memory], Follower] | None = None,
    loop: Callable[..., Machine] = Machine,
) -> list[Result]:
    executable, options, target = ranks[0].executable, ranks[0].options, ranks[0].target
    timeline, scenes = _Timeline(options.timeline), []
    machine = loop(executable, ranks, options, target)
    for number, rank in enumerate(ranks):
        rank.hooks += [follow(rank.memory)] if follow is not None else []
        if options.timeline:
            rank.hooks.insert(0, timeline)
        if observers:
            tensors = Tensors(executable, rank.memory, rank.shadow, options.precise)
            scenes.append(Scene(number, executable, target, rank.runners, tensors, machine))
            rank.hooks.insert(0, Observed(scenes[-1], observers))
    for observer in observers:
        for scene in scenes:
            observer.begin(scene)
    machine.run()
    for observer in observers:
        observer.end()
    return [rank.result(machine, timeline.of(number)) for number, rank in enumerate(ranks)]


def _ordered(executable: Executable, inputs: Arrays, options: RunOptions) -> Rerun | None:
    """Return the run without its values, for repetition.

    Return None if values affect it, or if it ends in a fault, which values may have caused.
    """
    if not may_be_fixed(executable):
        return None
    rank = _Rank(executable, inputs, options, 0, separate=True)
    if has_collectives(rank.runners):
        return None
    timeline = _Timeline(options.timeline)
    rank.hooks += [timeline] if options.timeline else []
    order = Order(executable, [rank], options, rank.target)
    try:
        order.run()
    except (ProgramFault, LimitHit, NotFixed):
        return None
    return Rerun(order, rank.prints, rank.remarks, rank.passed(order, timeline.of(0)))


def _contents(executable: Executable, inputs: Arrays) -> dict[int, NDArray[np.generic]]:
    contents = {p.tensor: inputs[p.name] for p in executable.inputs}
    for number, raw in executable.constants.items():
        contents[number] = np.frombuffer(raw, storage(executable.tensors[number].dtype))
    return contents
