"""Runs an artifact."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nkic.api.arrays import Array, array_of, offer, presented
from nkic.api.artifact import Artifact
from nkic.api.errors import RunError, raising
from nkic.api.html import table
from nkic.base.diagnostics import Diagnostic, UsageFailed, make
from nkic.machine.targets import TARGETS
from nkic.report import run_report
from nkic.report.resources import resources
from nkic.report.run_report import EngineRow, InputRow, OutputRow, PrintRow, Run
from nkic.simulate import EngineUse, Options, simulate_ranks
from nkic.simulate import Result as Simulated
from nkic.simulate.footprint import check_memory
from nkic.simulate.io.bind import Bound, Wanted, bind
from nkic.simulate.io.offers import Offer
from nkic.simulate.io.specs import Spec, Value, parse_fill
from nkic.simulate.stats import stats_of


@dataclass(frozen=True)
class Result:
    """A finished run. `outputs` by name, in their own element types (ml_dtypes' where it is
    installed): what the kernel returned as `output_0` …, then inputs that it updated in place.

    `cycles` are of the target's base clock, `time_ns` is simulated time. `remarks` say what was
    done to inputs.
    """

    outputs: Mapping[str, Array]
    cycles: int
    time_ns: float
    engines: Mapping[str, EngineUse]
    run: Run = field(repr=False)
    remarks: tuple[Diagnostic, ...] = ()

    @property
    def report(self) -> str:
        """The report as `nki-run` prints it: prints, outputs, cycles, engines."""
        line = run_report.cycles_line(self.run, TARGETS[self.run.target])
        lines = [*self.prints, *(row.line for row in self.run.outputs), line]
        return "".join(f"{one}\n" for one in lines)

    @property
    def prints(self) -> tuple[str, ...]:
        """What the program printed by `nl.device_print`, in order."""
        cores = len({name.partition(".")[0] for name in self.engines})
        return tuple(row.lines(cores) for row in self.run.prints)

    @property
    def json(self) -> str:
        """The report as `nki-run --json` prints it."""
        return run_report.as_json(self.run)

    def _repr_html_(self) -> str:
        """For notebooks: outputs and engines."""
        outputs = table(("output",), [(row.line,) for row in self.run.outputs])
        rows = [(n, f"{e.busy_ns:,.0f}", e.instructions) for n, e in self.engines.items()]
        line = run_report.cycles_line(self.run, TARGETS[self.run.target])
        return f"<b>{line}</b>{outputs}{table(('engine', 'busy ns', 'instructions'), rows)}"


def run(
    artifact: Artifact,
    inputs: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    fill: str | None = None,
    cast: bool = False,
    init_check: bool = True,
    precise_fp: bool | None = None,
    max_cycles: int | None = None,
    max_memory: int | None = None,
    timeout: float | None = None,
) -> Result:
    """Runs a compiled kernel on `inputs`: arrays by name, or the path of an npz file.

    Options are those of `nki-run`: `fill` makes what is missing ("zeros", "normal", …), `cast`
    converts other element types, `precise_fp` rounds after every instruction (by default as
    NKI_PRECISE_FP says, else yes), `max_memory` is in bytes, `timeout` in seconds. Raises
    `RunError`.
    """
    options = Options(init_check, _precise(precise_fp), max_cycles, timeout)
    return _run(artifact, [_wanted(inputs, fill, cast)], options, max_memory)[0]


def run_ranks(
    artifact: Artifact,
    inputs: Sequence[Mapping[str, Any] | str | os.PathLike[str] | None],
    *,
    fill: str | None = None,
    cast: bool = False,
    init_check: bool = True,
    precise_fp: bool | None = None,
    max_cycles: int | None = None,
    max_memory: int | None = None,
    timeout: float | None = None,
) -> list[Result]:
    """Runs a compiled kernel as ranks 0, 1, … together, each on its own inputs.

    Ranks exchange data by `nki.collectives`. The times of each result are those of all ranks.
    Options are as in `run`. Raises `RunError`.
    """
    options = Options(init_check, _precise(precise_fp), max_cycles, timeout)
    return _run(artifact, [_wanted(one, fill, cast) for one in inputs], options, max_memory)


def _run(
    artifact: Artifact, wanted: Sequence[Wanted], options: Options, max_memory: int | None
) -> list[Result]:
    """Of every rank."""
    executable = None
    with raising(RunError):
        executable = artifact.executable
    with raising(RunError, executable.sources.get):
        check_memory(executable, max_memory, len(wanted))
        bound = [bind(artifact.signature, one) for one in wanted]
        found = simulate_ranks(executable, [one.arrays for one in bound], options)
    return [_result(artifact, b, f, options) for b, f in zip(bound, found, strict=True)]


def _wanted(
    inputs: Mapping[str, Any] | str | os.PathLike[str] | None, fill: str | None, cast: bool
) -> Wanted:
    generator = parse_fill(fill)
    if inputs is None or not isinstance(inputs, Mapping):
        return Wanted(None if inputs is None else os.fspath(inputs), {}, generator, cast)
    return Wanted(None, {name: _spec(name, v) for name, v in inputs.items()}, generator, cast)


def _spec(name: str, value: Any) -> Spec | Offer:
    array = array_of(value)
    if array is not None:
        return offer(array)
    if isinstance(value, int | float):
        return Value(float(value))
    text = f"input `{name}` is a {type(value).__qualname__}, not an array"
    raise UsageFailed([make("bad-argument", text, help="pass a NumPy array")])


def _precise(wanted: bool | None) -> bool:
    return os.environ.get("NKI_PRECISE_FP", "") != "0" if wanted is None else wanted


def _result(artifact: Artifact, bound: Bound, found: Simulated, options: Options) -> Result:
    signature = artifact.signature
    kinds = {p.name: p.dtype for p in signature.outputs}
    outputs = {name: presented(array, kinds[name]) for name, array in found.outputs.items()}
    summary = _summary(artifact, bound, found, options)
    return Result(
        outputs, found.cycles, found.time_ns, found.engines, summary, tuple(bound.remarks)
    )


def _summary(artifact: Artifact, bound: Bound, found: Simulated, options: Options) -> Run:
    executable, signature = artifact.executable, artifact.signature
    uses = found.engines.items()
    return Run(
        kernel=executable.name,
        target=executable.target,
        id=artifact.id,
        cycles=found.cycles,
        time_ns=found.time_ns,
        engines={name: EngineRow(use.busy_ns, use.instructions) for name, use in uses},
        instructions=found.instructions,
        dma_bytes=found.dma_bytes,
        precise_fp=options.precise,
        resources=resources(executable).as_json(),
        inputs=[
            InputRow(p.name, p.dtype.name, p.shape, bound.sources[p.name]) for p in signature.inputs
        ],
        outputs=[
            OutputRow(p.name, p.dtype.name, p.shape, **vars(stats_of(array, p.dtype)))
            for p in signature.outputs
            for array in [found.outputs[p.name]]
        ],
        compare=[],
        prints=[
            PrintRow(p.core, p.prefix, p.dtype.name, p.values.shape, p.text) for p in found.printed
        ],
        prints_left_out=found.prints_left_out,
    )
