"""Runs a verified executable."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from nkic.artifact.records import Executable
from nkic.artifact.verify import verify_ordered
from nkic.base.collector import without_collector
from nkic.base.diagnostics import LimitHit, ProgramFault
from nkic.machine.codecs import storage
from nkic.machine.targets import Target
from nkic.simulate import rerun
from nkic.simulate.beside import Follower
from nkic.simulate.bounds import Bounds
from nkic.simulate.machine import CycleLimit, Machine, Rank
from nkic.simulate.memory import Memory
from nkic.simulate.numerics import quiet
from nkic.simulate.numerics.matmul import blas_threads
from nkic.simulate.observed import Observed, Observer, Scene, Tensors
from nkic.simulate.outcome import Prints, Remarks, RunOptions
from nkic.simulate.plans import Decoder
from nkic.simulate.races import RaceDetector
from nkic.simulate.recorder import Recorder
from nkic.simulate.rerun import NotFixed, Order, has_collectives, may_be_fixed
from nkic.simulate.result import Busy, EngineUse, Result, recorded
from nkic.simulate.shadow import Shadow, never_written
from nkic.simulate.streams import Hook, Item, Runner, prepare

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
    if run_options.check_races:
        verify_ordered(executable)
        if executable.cores == 1:  # the run has nothing left to check
            run_options = replace(run_options, check_races=False)
    is_plain = not observers and follow is None and loop is Machine
    with without_collector(), blas_threads(run_options.threads), quiet():
        if is_plain and len(inputs) == 1 and rerun.may_repeat(run_options):
            return [_repeatable(executable, inputs[0], run_options)]
        ranks = [
            _Rank(executable, arrays, run_options, number, watched=not is_plain)
            for number, arrays in enumerate(inputs)
        ]
        return _run(executable, ranks, run_options, observers, follow, loop)


def _repeatable(executable: Executable, inputs: Arrays, options: RunOptions) -> Result:
    """Run the program, repeating an earlier run or preparing for a repetition."""
    entry = rerun.take(executable, options)
    if entry.is_fixed and entry.rerun is None:
        entry.rerun = _ordered(executable, inputs, replace(options, watch=None))
        entry.is_fixed = entry.rerun is not None
    if entry.rerun is not None:
        contents = _contents(executable, inputs)
        result = entry.rerun.run(contents, options.precise, options.watch)
    else:
        (result,) = _run(executable, [_Rank(executable, inputs, options, 0)], options)
    rerun.put(entry)
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
        contents = _contents(executable, inputs)
        in_place = options.copies_less and not watched
        self.memory = Memory(executable, contents, in_place, separate)
        races = options.check_races and executable.cores > 1
        shadow = Shadow(executable, self.memory) if options.check_init or races else None
        checked = shadow if options.check_init else None
        if checked is not None:
            for number in contents:
                checked.fill(number)
        target = options.target_of(executable)
        decoder = Decoder(self.memory, target, options.precise, options.accumulate)
        self.prints, self.remarks = Prints(), Remarks()
        runners = prepare(executable, target, decoder, checked, self.prints, rank, self.remarks)
        super().__init__(runners, checked)
        self.recorder = self.timeline = self.bounds = None
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
    executable: Executable,
    ranks: Sequence[_Rank],
    options: RunOptions,
    observers: Sequence[Observer] = (),
    follow: Callable[[Memory], Follower] | None = None,
    loop: Callable[..., Machine] = Machine,
) -> list[Result]:
    target, timeline = options.target_of(executable), _Timeline(options.timeline)
    machine = loop(executable, ranks, options, target)
    scenes = []
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
    return [
        _ended(rank, executable, machine, options, timeline.of(number))
        for number, rank in enumerate(ranks)
    ]


def _ordered(executable: Executable, inputs: Arrays, options: RunOptions) -> rerun.Rerun | None:
    """Return the run without its values, for repetition.

    Return None if values affect it, or if it ends in a fault, which values may have caused.
    """
    if not may_be_fixed(executable):
        return None
    rank = _Rank(executable, inputs, options, 0, separate=True)
    if has_collectives(rank.runners):
        return None
    target, timeline = options.target_of(executable), _Timeline(options.timeline)
    rank.hooks += [timeline] if options.timeline else []
    order = Order(executable, [rank], options, target)
    try:
        order.run()
    except (ProgramFault, LimitHit, NotFixed):
        return None
    result = _passed(rank, executable, order, target, timeline.of(0))
    return rerun.Rerun(order, rank.prints, rank.remarks, result)


def _ended(
    rank: _Rank,
    executable: Executable,
    machine: Machine,
    options: RunOptions,
    timeline: tuple[Busy, ...],
) -> Result:
    bounds = rank.bounds
    passed = _passed(rank, executable, machine, options.target_of(executable), timeline)
    return replace(
        rerun.with_values(
            passed, executable, rank.memory, rank.prints, rank.remarks, options.precise
        ),
        bounds={p.name: bounds.of_output(p.tensor) for p in executable.outputs} if bounds else None,
        uncovered=bounds.uncovered if bounds else {},
    )


def _passed(
    rank: _Rank,
    executable: Executable,
    machine: Machine,
    target: Target,
    timeline: tuple[Busy, ...],
) -> Result:
    """Return a result without values: times, and remarks on uninitialised outputs."""
    uses: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for runner in rank.runners:
        name = f"core{runner.core}.{runner.engine.value}"
        uses[name][0] += runner.busy
        uses[name][1] += runner.count
    cores = {runner.unit: runner.core for runner in rank.runners}
    for (unit, engine), busy in machine.rings.held.items():
        if unit in cores:
            uses[f"core{cores[unit]}.{engine.value}"][0] += busy
    unwritten = never_written(executable, rank.shadow) if rank.shadow is not None else []
    return Result(
        {},
        machine.end / 1000,
        -(-machine.end * target.base_clock_mhz // 1_000_000),
        {name: EngineUse(busy / 1000, count) for name, (busy, count) in sorted(uses.items())},
        sum(runner.bytes for runner in rank.runners),
        sum(runner.count for runner in rank.runners),
        remarks=tuple(unwritten),
        timeline=timeline,
        recorded=recorded(rank.recorder, machine.end) if rank.recorder else None,
    )


def _contents(executable: Executable, inputs: Arrays) -> dict[int, NDArray[np.generic]]:
    contents = {p.tensor: inputs[p.name] for p in executable.inputs}
    for number, raw in executable.constants.items():
        contents[number] = np.frombuffer(raw, storage(executable.tensors[number].dtype))
    return contents
