"""Runs a verified executable."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nkic.artifact.records import Executable
from nkic.artifact.verify import verify_ordered
from nkic.base.collector import without_collector
from nkic.base.diagnostics import LimitHit, ProgramFault
from nkic.machine.codecs import storage
from nkic.machine.targets import Target
from nkic.simulate import rerun
from nkic.simulate.bounds import Bounds
from nkic.simulate.machine import Machine
from nkic.simulate.memory import Memory
from nkic.simulate.numerics import quiet
from nkic.simulate.numerics.matmul import blas_threads
from nkic.simulate.outcome import Prints, Remarks, RunOptions
from nkic.simulate.plans import Decoder
from nkic.simulate.races import RaceDetector
from nkic.simulate.recorder import Recorder
from nkic.simulate.rerun import NotFixed, Order, has_collectives, may_be_fixed
from nkic.simulate.result import Busy, EngineUse, Result, recorded
from nkic.simulate.shadow import Shadow
from nkic.simulate.streams import Runner, prepare
from nkic.simulate.unwritten import never_written

Arrays = Mapping[str, NDArray[np.generic]]


class MachineMaker(Protocol):
    """Makes the event loop of a run from `Machine`'s arguments and the memories of its ranks."""

    def __call__(
        self,
        executable: Executable,
        runners: list[Runner],
        shadows: Sequence[Shadow | None],
        options: RunOptions,
        limit_ps: int | None,
        target: Target,
        /,
        *,
        memories: Sequence[Memory],
    ) -> Machine: ...


def plain(*facts: Any, memories: Sequence[Memory]) -> Machine:
    """Return the event loop of a run that is not observed."""
    return Machine(*facts)


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
    make: MachineMaker = plain,
) -> list[Result]:
    """Run `executable` once for each of `inputs`, concurrently, as ranks 0, 1, …

    Ranks exchange data by collectives alone. The times in every result are those of all ranks
    together, its counts those of its own rank. `make` makes the event loop, which lets a caller
    observe the run (`simulate.debug`). Otherwise as `simulate`.
    """
    run_options = options or RunOptions()
    if run_options.check_races:
        verify_ordered(executable)
    with without_collector(), blas_threads(run_options.threads), quiet():
        if make is plain and len(inputs) == 1 and rerun.may_repeat(run_options):
            return [_repeatable(executable, inputs[0], run_options)]
        return _run(executable, inputs, run_options, make)


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
        (result,) = _run(executable, [inputs], options, plain)
    rerun.put(entry)
    return result


class _Rank:
    """One of the kernels that run together."""

    def __init__(
        self,
        executable: Executable,
        inputs: Arrays,
        options: RunOptions,
        rank: int,
        watched: bool = False,
        separate: bool = False,
    ) -> None:
        contents = _contents(executable, inputs)
        in_place = options.copies_less and not watched
        self.memory = Memory(executable, contents, in_place, separate)
        races = options.check_races and executable.cores > 1
        shadow = Shadow(executable, self.memory) if options.check_init or races else None
        self.shadow = shadow if options.check_init else None
        if self.shadow is not None:
            for number in contents:
                self.shadow.fill(number)
        target = options.target_of(executable)
        decoder = Decoder(self.memory, target, options.precise, options.accumulate)
        self.prints, self.remarks = Prints(), Remarks()
        self.runners = prepare(
            executable, target, decoder, self.shadow, self.prints, rank, self.remarks
        )
        report_bounds = options.report_bounds
        self.bounds = Bounds(executable, self.memory, target) if report_bounds else None
        self.recorder = _recorder(executable, target, self.runners, options)
        self.orders: RaceDetector | None = None
        if races and shadow is not None:
            self.orders = RaceDetector(executable, target, self.runners, shadow)


def _recorder(
    executable: Executable, target: Target, runners: list[Runner], options: RunOptions
) -> Recorder | None:
    return Recorder(executable, target, runners, options.trace) if options.trace else None


def _run(
    executable: Executable,
    inputs: Sequence[Arrays],
    options: RunOptions,
    make: MachineMaker,
) -> list[Result]:
    target = options.target_of(executable)
    limit = _limit(options, target)
    watched = make is not plain  # memory is observed before the end
    ranks = [
        _Rank(executable, arrays, options, rank, watched) for rank, arrays in enumerate(inputs)
    ]
    runners = [runner for rank in ranks for runner in rank.runners]
    shadows, memories = [rank.shadow for rank in ranks], [rank.memory for rank in ranks]
    machine = make(executable, runners, shadows, options, limit, target, memories=memories)
    machine.bounds += [rank.bounds for rank in ranks if rank.bounds is not None]
    machine.orders = [rank.orders for rank in ranks if rank.orders is not None]
    machine.recorders = [rank.recorder for rank in ranks if rank.recorder is not None]
    machine.run()
    return [_ended(rank, executable, machine, options) for rank in ranks]


def _ordered(executable: Executable, inputs: Arrays, options: RunOptions) -> rerun.Rerun | None:
    """Return the run without its values, for repetition.

    Return None if values affect it, or if it ends in a fault, which values may have caused.
    """
    if not may_be_fixed(executable):
        return None
    rank, target = (
        _Rank(executable, inputs, options, 0, separate=True),
        options.target_of(executable),
    )
    if has_collectives(rank.runners):
        return None
    limit = _limit(options, target)
    order = Order(executable, rank.runners, [rank.shadow], options, limit, target)
    order.recorders = [rank.recorder] if rank.recorder is not None else []
    try:
        order.run()
    except (ProgramFault, LimitHit, NotFixed):
        return None
    memory, prints, remarks = rank.memory, rank.prints, rank.remarks
    result = _passed(rank, executable, order, target)
    return rerun.Rerun(
        rerun.Ordered(executable, memory, rank.runners, prints, remarks, order.ran, result)
    )


def _limit(options: RunOptions, target: Target) -> int | None:
    """Return the limit on simulated time in picoseconds."""
    if options.max_cycles is None:
        return None
    return options.max_cycles * 1_000_000 // target.base_clock_mhz


def _ended(rank: _Rank, executable: Executable, machine: Machine, options: RunOptions) -> Result:
    bounds = rank.bounds
    passed = _passed(rank, executable, machine, options.target_of(executable))
    return replace(
        rerun.with_values(
            passed, executable, rank.memory, rank.prints, rank.remarks, options.precise
        ),
        bounds={p.name: bounds.of_output(p.tensor) for p in executable.outputs} if bounds else None,
        uncovered=bounds.uncovered if bounds else {},
    )


def _passed(rank: _Rank, executable: Executable, machine: Machine, target: Target) -> Result:
    """Return a result without values: times, and remarks on uninitialised outputs."""
    unwritten = never_written(executable, rank.shadow) if rank.shadow is not None else []
    return replace(
        _result({}, rank.runners, machine, target),
        remarks=tuple(unwritten),
        timeline=tuple(_timeline(rank, machine)),
        recorded=recorded(rank.recorder, machine.end) if rank.recorder else None,
    )


def _timeline(rank: _Rank, machine: Machine) -> list[Busy]:
    names = {runner.index: runner.record.name for runner in rank.runners}
    timeline = [
        Busy(names[runner.index], item.record, start, end)
        for runner, item, start, end in machine.timeline
        if runner.index in names
    ]
    return sorted(timeline, key=lambda busy: busy.start)


def _contents(executable: Executable, inputs: Arrays) -> dict[int, NDArray[np.generic]]:
    """Return the contents of inputs and constants, by tensor."""
    contents = {p.tensor: inputs[p.name] for p in executable.inputs}
    for number, raw in executable.constants.items():
        contents[number] = np.frombuffer(raw, storage(executable.tensors[number].dtype))
    return contents


def _result(
    outputs: dict[str, NDArray[np.generic]],
    runners: list[Runner],
    machine: Machine,
    target: Target,
) -> Result:
    uses: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for runner in runners:
        name = f"core{runner.record.core}.{runner.record.engine.value}"
        uses[name][0] += runner.busy
        uses[name][1] += runner.count
    cores = {runner.unit: runner.core for runner in runners}
    for (unit, engine), busy in machine.rings.held.items():
        if unit in cores:
            uses[f"core{cores[unit]}.{engine.value}"][0] += busy
    return Result(
        outputs,
        machine.end / 1000,
        -(-machine.end * target.base_clock_mhz // 1_000_000),
        {name: EngineUse(busy / 1000, count) for name, (busy, count) in sorted(uses.items())},
        sum(runner.bytes for runner in runners),
        sum(r.count for r in runners),
    )
