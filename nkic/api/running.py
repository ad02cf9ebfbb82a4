"""Run an artifact, and inspect the run: tensors after given source lines, and changes to them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from html import escape
from typing import Annotated, Any, NamedTuple, Unpack

import numpy as np
from numpy.typing import NDArray

from nkic.api import errors, options
from nkic.api.arrays import Array, array_of, offer, presented
from nkic.api.artifact import Artifact, Compiled, table
from nkic.api.errors import RunError, raising, refuse
from nkic.api.loading import with_cells
from nkic.api.options import Count, FilePath, Fill, Running, Values
from nkic.artifact.arrays import Offer
from nkic.artifact.disassemble import source_place
from nkic.artifact.records import Executable
from nkic.base import levels
from nkic.base.diagnostics import (
    Diagnostic,
    NkicError,
    ProgramFault,
    UsageFailed,
    bad_value,
    did_you_mean,
    make,
)
from nkic.base.levels import DEFAULT, Settings
from nkic.base.text import whole_number
from nkic.machine.operators import ORDERS
from nkic.machine.targets import TARGETS
from nkic.report import run_report, timeline
from nkic.report.critical import Trust
from nkic.report.figures import figures, run_options, trust_in
from nkic.report.page import page
from nkic.report.resources import executions
from nkic.report.run_report import RunReport
from nkic.report.timeline import Stretch
from nkic.report.verdict import Insight, insight
from nkic.simulate import EngineUse, RunOptions, simulate_ranks
from nkic.simulate import Result as Simulated
from nkic.simulate.compare import ToleranceSettings
from nkic.simulate.expectations import Expectations, Expected
from nkic.simulate.fuzz import Fuzz, diagnostic
from nkic.simulate.inputs import BoundInputs, Spec, Value, Wanted, bind, parse_fill
from nkic.simulate.memory import check_memory
from nkic.simulate.observed import Observer, Region, part
from nkic.simulate.result import Busy, Recorded
from nkic.simulate.watching import Dump, Dumps, Tap, Watches, text

EVERYTHING = "all"
# Told now and then how many instructions of a run are done, and of how many if that is known.
PROGRESS: ContextVar[Callable[[int, int | None], object] | None] = ContextVar(
    "PROGRESS", default=None
)


class Dumped(NamedTuple):
    """A whole tensor after a write.

    `time` counts the writes of this line to tensors of this name, from 0, in program order;
    `iteration` is the iteration of each enclosing device loop, `unrolled` that of each enclosing
    Python loop, as "i=3 j=0", if the artifact stores them. `region` is the region written (None: at
    run-time offsets); `unwritten` counts the elements that are still uninitialised.
    """

    tensor: str
    line: int
    time: int
    iteration: tuple[int, ...]
    unrolled: str
    engine: str
    start_ns: float
    done_ns: float
    region: Region | None
    unwritten: int
    array: Array


class Inspection:
    """The dumps, expectations and watches that a run's options request. Raises `UsageFailed`."""

    def __init__(self, call_options: Running, ranks: int) -> None:
        self.dumps: Dumps | None = None
        self.expectations: Expectations | None = None
        observers: list[Observer] = []
        rtol, atol = call_options.get("rtol"), call_options.get("atol")
        if dump := _as_list(call_options.get("dump")):
            taps = [_tap(request) for request in dump if request != EVERYTHING]
            self.dumps = Dumps(taps, EVERYTHING in dump)
            observers.append(self.dumps)
        if (expected := call_options.get("expect_at")) is not None:
            references = [Expected(line, "expect_at", _offers(a)) for line, a in expected.items()]
            settings = ToleranceSettings.of_all(rtol=rtol, atol=atol)
            self.expectations = Expectations([references] * ranks, settings)
            observers.append(self.expectations)
        elif rtol is not None or atol is not None:
            message = "rtol and atol apply to expect_at, which is not given"
            raise UsageFailed([make("conflicting-options", message, help="leave them out")])
        if watched := _as_list(call_options.get("watch")):
            parts = [part(selection) for selection in watched]
            observers.append(Watches(parts, lambda changed: print(text(changed))))
        self.observers = observers

    def dumped(self, rank: int) -> tuple[Dumped, ...]:
        return tuple(_dumped(dump) for dump in self.dumps.by_rank[rank]) if self.dumps else ()

    def judge(self, ranks: int) -> None:
        """Raise the error for the first line at which a rank diverges from what was expected."""
        if self.expectations is not None:
            diagnostics = [self.expectations.first_difference(rank) for rank in range(ranks)]
            if any(diagnostics):
                raise ProgramFault([*filter(None, diagnostics)])


def _as_list(names: str | Sequence[str] | None) -> list[str]:
    return [names] if isinstance(names, str) else list(names or ())


def _tap(text: str) -> Tap:
    name, at, line = text.rpartition("@")
    number = whole_number(line)
    if not at or not name or number is None:
        message = f"dump={text!r}: expected 'NAME@LINE' or 'all'"
        raise bad_value(message, "for example dump='acc@12'")
    return Tap(name, number)


def _offers(arrays: Mapping[str, Any]) -> dict[str, Any]:
    offers = {}
    for name, value in arrays.items():
        array = array_of(value)
        if array is None:
            message = f"expect_at: `{name}` is a {type(value).__qualname__}, not an array"
            raise bad_value(message, "pass a NumPy array")
        offers[name] = offer(array)
    return offers


def _dumped(dump: Dump) -> Dumped:
    write = dump.write
    return Dumped(
        *(write.name, write.line, dump.time, write.iterations, write.unrolled, write.stream.name),
        *(write.start / 1000, write.done / 1000, write.region, dump.unwritten),
        presented(dump.array, dump.dtype),
    )


MAX_TIMELINE = 100_000  # instructions whose times a result keeps


@dataclass(frozen=True)
class Result:
    """A finished run.

    `outputs` maps names to arrays in their own element types (ml_dtypes' if it is installed): what
    the kernel returned as `output_0` …, then the inputs that it updated in place. `cycles` count
    the target's base clock; `time_ns` is simulated time. `remarks` report conversions of inputs,
    and where a device would behave differently. `error_bounds`, if requested by
    `report_error_bound`, gives for each output how far each element may be from exact arithmetic
    (docs/fidelity.md). `dumps` are the tensors that `dump` requested, write by write.
    """

    outputs: Mapping[str, Array]
    cycles: int
    time_ns: float
    engines: Mapping[str, EngineUse]
    _measured: RunReport = field(repr=False)
    _trust: Callable[[], Trust] = field(repr=False)
    remarks: tuple[Diagnostic, ...] = ()
    busy: tuple[Busy, ...] = field(default=(), repr=False)
    executable: Executable | None = field(default=None, repr=False)
    error_bounds: Mapping[str, NDArray[np.float64]] | None = field(default=None, repr=False)
    recorded: Recorded | None = field(default=None, repr=False)
    dumps: tuple[Dumped, ...] = field(default=(), repr=False)

    def dumped(self, tensor: str, line: int | None = None) -> list[Array]:
        """Return the dumped contents of a tensor after each write, or each write of one line.

        They are ordered by line, then in program order.
        """
        matching = [
            dump for dump in self.dumps if dump.tensor == tensor and line in (None, dump.line)
        ]
        return [dump.array for dump in sorted(matching, key=lambda dump: (dump.line, dump.time))]

    @cached_property
    def run(self) -> RunReport:
        """The figures of the run, with the trust in its time."""
        return replace(self._measured, trust=self._trust())

    @property
    def report(self) -> str:
        """The report as `nki-run` prints it: prints, outputs, cycles, engines."""
        line = run_report.cycles_line(self.run, TARGETS[self.run.target])
        bounds = filter(None, [row.bound_line for row in self.run.outputs])
        times = (line, run_report.device_line(self.run))
        lines = [*self.prints, *(row.line for row in self.run.outputs), *bounds, *times]
        return "".join(f"{text}\n" for text in lines)

    @property
    def prints(self) -> tuple[str, ...]:
        """The lines that the program printed with `nl.device_print`, in order."""
        cores = len({name.partition(".")[0] for name in self.engines})
        left_out = run_report.left_out_line(self.run)
        return (*(row.lines(cores) for row in self.run.prints), *filter(None, [left_out]))

    @property
    def json(self) -> str:
        """The report as `nki-run --json --no-verdict` prints it."""
        return run_report.as_json(self.run)

    @cached_property
    def insight(self) -> Insight | None:
        """The analysis of the run's time; None if the run was too long to be recorded."""
        recorded = self.recorded
        if recorded is None or not recorded.trace.complete:
            return None
        return insight(recorded.trace, recorded.again if recorded.can_repeat else None)

    @property
    def verdict(self) -> str:
        """What bounds the run, and what would help most, in at most six lines."""
        return with_cells("\n".join(self.insight.verdict.lines)) if self.insight else ""

    @property
    def page(self) -> str:
        """The report of `nki-run profile --report html=FILE`: one self-contained page."""
        if self.insight is None or self.executable is None:
            raise ValueError("the run was too long to be recorded, so there is no report of it")
        return page(self.insight, self.run, self.executable.sources)

    @cached_property
    def timeline(self) -> tuple[Stretch, ...]:
        """When each engine and queue was busy, and with what, for the first 100,000
        instructions.
        """
        executable = self.executable
        return (
            tuple(_stretch(executable, interval) for interval in self.busy)
            if executable is not None
            else ()
        )

    @property
    def svg(self) -> str:
        """The timeline as a picture."""
        title = run_report.cycles_line(self.run, TARGETS[self.run.target])
        if len(self.busy) < self.run.instructions:
            title += f"; the first {len(self.busy):,} instructions"
        return timeline.svg(self.timeline, self.time_ns, title)

    def _repr_svg_(self) -> str:
        """The timeline, for notebooks and other viewers."""
        return self.svg

    def _repr_html_(self) -> str:
        """Outputs, engines and the timeline, for notebooks."""
        outputs = table(("output",), [(row.line,) for row in self.run.outputs])
        rows = [(n, f"{e.busy_ns:,.0f}", e.instructions) for n, e in self.engines.items()]
        title = run_report.cycles_line(self.run, TARGETS[self.run.target])
        lines = [run_report.device_line(self.run), *self.verdict.splitlines()]
        words = "".join(f"<p>{escape(line)}</p>" for line in lines)
        engines = table(("engine", "busy ns", "instructions"), rows)
        note = "<p>Bars of transfers end when the data arrives, after their queue is free.</p>"
        return f"<b>{escape(title)}</b>{words}{outputs}{engines}{self.svg}{note}"


Inputs = Annotated[
    Mapping[str, Any] | FilePath | None,
    Values("a mapping of arrays by name, the path of an npz file or None"),
]


@options.public(RunError)
@options.documented(Running)
def run(
    artifact: Compiled,
    inputs: Inputs = None,
    *,
    fill: Fill | None = None,
    cast: bool = False,
    **call_options: Unpack[Running],
) -> Result:
    """Run a compiled kernel on `inputs`: arrays by name, or the path of an npz file.

    `fill` generates missing inputs ("zeros", "randn(0)", …), `cast` converts other element types.
    Raises `RunError`; warnings are issued as `NkicWarning`.
    """
    return _run(artifact, [inputs], fill, cast, call_options)[0]


@options.public(RunError)
@options.documented(Running)
def run_ranks(
    artifact: Compiled,
    inputs: Sequence[Inputs],
    *,
    fill: Fill | None = None,
    cast: bool = False,
    **call_options: Unpack[Running],
) -> list[Result]:
    """Run a compiled kernel as ranks 0, 1, … together, each on its own inputs.

    Ranks exchange data through `nki.collectives`. The times of each result cover all ranks. Options
    are those of `run`. Raises `RunError`.
    """
    return _run(artifact, inputs, fill, cast, call_options)


def _raising(executable: Executable) -> AbstractContextManager[None]:
    """Turn errors of a run into `RunError`, with notebook cells under the notebook's names."""
    sources = {with_cells(path): source for path, source in executable.sources.items()}
    return raising(RunError, sources.get, lambda found: [d.relocated(with_cells) for d in found])


_OF_ONE_RUN = (
    *("dump", "watch", "expect_at", "rtol", "atol"),
    *("max_cycles", "race_check", "report_error_bound"),
)


@options.public(RunError, without=_OF_ONE_RUN)
@options.documented(Running)
def fuzz_order(
    artifact: Compiled,
    inputs: Inputs = None,
    *,
    orders: Count = 16,
    seed: int = 0,
    fill: Fill | None = None,
    cast: bool = False,
    **call_options: Unpack[Running],
) -> None:
    """Run a compiled kernel in `orders` other orders that its semaphores allow, like `nki-run
    debug --fuzz-order`.

    Raises `RunError` with the two racing lines if one of them gives different outputs. The same
    `seed` tries the same orders.
    """
    with raising(RunError):
        executable = artifact.executable
    with _raising(executable):
        check_memory(executable, options.memory_of(call_options))
        bound = bind(artifact.signature, wanted(inputs, fill, cast))
        fuzz = Fuzz(executable, [bound.arrays], settings_of(call_options), seed)
        race = fuzz.search(orders)
        if race is not None:
            raise ProgramFault([diagnostic(executable, race, seed)])


def _run(
    artifact: Artifact,
    inputs: Sequence[Inputs],
    fill: str | None,
    cast: bool,
    call_options: Running,
) -> list[Result]:
    with raising(RunError):
        executable = artifact.executable
        check_ranks(inputs, "inputs")
    with _raising(executable):
        settings = settings_of(call_options)
        if call_options.get("race_check") is not False:
            executable = artifact.ordered
        check_memory(executable, options.memory_of(call_options), len(inputs))
        bound = [bind(artifact.signature, wanted(arrays, fill, cast)) for arrays in inputs]
        warning_levels = call_options.get("levels") or DEFAULT
        input_remarks = [_reported(executable, b.remarks, warning_levels, NkicError) for b in bound]
        seen = Inspection(call_options, len(inputs))
        if (tell := PROGRESS.get()) is not None:
            total = (executions(executable) or 0) * len(inputs) or None
            settings = replace(settings, watch=lambda done: tell(done, total))
        results = simulate_ranks(executable, [b.arrays for b in bound], settings, seen.observers)
        seen.judge(len(inputs))
        run_remarks = [
            _reported(executable, r.remarks, warning_levels, ProgramFault) for r in results
        ]
    return [
        replace(_result(artifact, b, r, settings, (*before, *after)), dumps=seen.dumped(rank))
        for rank, (b, r, before, after) in enumerate(
            zip(bound, results, input_remarks, run_remarks, strict=True)
        )
    ]


def check_ranks(given: Sequence[Any], noun: str) -> None:
    """Refuse an empty list of what each rank is given, which `noun` names."""
    if not given:
        refuse(f"no {noun} of ranks are given", f"pass a list with the {noun} of each rank")


def _reported(
    executable: Executable,
    diagnostics: Sequence[Diagnostic],
    warning_levels: Settings,
    failure: type[NkicError],
) -> tuple[Diagnostic, ...]:
    """Return the remarks at the requested levels: raise errors as `failure`, and issue warnings."""
    remarks = levels.judged(diagnostics, warning_levels, executable.sources, failure)
    errors.warn(remarks, lambda path: path)
    return remarks


def settings_of(call_options: Running) -> RunOptions:
    order = call_options.get("accumulate")
    if order not in (None, *ORDERS):
        text = f"accumulate={order!r}: there is no such order of additions"
        help = did_you_mean(str(order), ORDERS) or f"use {', '.join(ORDERS)}, or None"
        raise UsageFailed([make("bad-value", text, help=help)])
    machine = options.machine_of(call_options.get("machine"))
    kept = {"timeline": MAX_TIMELINE, "trace": MAX_TIMELINE}
    return run_options(call_options, os.environ, machine=machine, **kept)


def wanted(inputs: Inputs, fill: str | None, cast: bool) -> Wanted:
    """Return the inputs of a call in the form of those of a command line."""
    generator = parse_fill(fill)
    if inputs is None or not isinstance(inputs, Mapping):
        return Wanted(None if inputs is None else os.fspath(inputs), {}, generator, cast, True)
    return Wanted(None, {name: _spec(name, v) for name, v in inputs.items()}, generator, cast, True)


def _spec(name: str, value: Any) -> Spec | Offer:
    if isinstance(value, Offer):
        return value
    array = array_of(value)
    if array is not None:
        return offer(array)
    if isinstance(value, int | float):
        return Value(float(value))
    text = f"input `{name}` is a {type(value).__qualname__}, not an array"
    raise UsageFailed([make("bad-argument", text, help="pass a NumPy array")])


def _result(
    artifact: Artifact,
    bound: BoundInputs,
    simulated: Simulated,
    settings: RunOptions,
    remarks: tuple[Diagnostic, ...],
) -> Result:
    signature = artifact.signature
    kinds = {p.name: p.dtype for p in signature.outputs}
    outputs = {name: presented(array, kinds[name]) for name, array in simulated.outputs.items()}
    run = figures(artifact.executable, artifact.id, bound, simulated, settings)
    return Result(
        outputs,
        simulated.cycles,
        simulated.time_ns,
        simulated.engines,
        run,
        partial(trust_in, simulated, settings.target_of(artifact.executable)),
        remarks,
        simulated.timeline,
        artifact.executable,
        simulated.bounds,
        simulated.recorded,
    )


def _stretch(executable: Executable, busy: Busy) -> Stretch:
    row, line = busy.record.row, with_cells(source_place(executable, busy.record.place))
    name = row.name if row is not None else ""
    return Stretch(busy.stream, busy.start / 1000, busy.end / 1000, name, line)
