"""The figures of a finished run, for the command and for the Python API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.artifact.disassemble import source_place
from nkic.artifact.records import Executable
from nkic.base import files
from nkic.base.diagnostics import bad_value
from nkic.base.text import whole_number
from nkic.machine.dtypes import DType
from nkic.machine.targets import Engine, Target
from nkic.report.critical import Trust, trust_of
from nkic.report.resources import resources
from nkic.report.run_report import BoundRow, EngineRow, InputRow, OutputRow, PrintRow, RunReport
from nkic.simulate import Result, RunOptions
from nkic.simulate.compare import stats_of
from nkic.simulate.inputs import BoundInputs, Signature, numbers, signature_of

PRECISE_VARIABLE = "NKI_PRECISE_FP"  # asks for rounding after each instruction
THREADS_VARIABLE = "NKIC_BLAS_THREADS"
MAX_THREADS = 1024


def blas_threads(environ: Mapping[str, str]) -> int:
    """Return the number of threads that a run may use for matrix products: NKIC_BLAS_THREADS, or
    one.

    Raises `UsageFailed`.
    """
    value = environ.get(THREADS_VARIABLE, "") or "1"
    threads = whole_number(value, MAX_THREADS)
    if not threads:
        text = f"{THREADS_VARIABLE}={value} in the environment: expected 1 to {MAX_THREADS}"
        raise bad_value(text, f"unset {THREADS_VARIABLE}")
    return threads


# What a user calls the options of a run, in `nki-run` and in `nkic.run`.
OPTIONS = {
    **{"init_check": "check_init", "race_check": "check_races", "precise_fp": "precise"},
    **{"report_error_bound": "report_bounds", "accumulate": "accumulate"},
    **{"max_cycles": "max_cycles", "timeout": "timeout_s"},
}


def run_options(given: Mapping[str, Any], environ: Mapping[str, str], **more: Any) -> RunOptions:
    """Return the simulator's options for the user's, of which `given` may hold others, too.

    `more` takes precedence. Raises `UsageFailed`.
    """
    chosen = {f: given[name] for name, f in OPTIONS.items() if given.get(name) is not None}
    if "precise" not in chosen:
        chosen["precise"] = files.is_on(PRECISE_VARIABLE, environ)
    return RunOptions(**{"blas_threads": blas_threads(environ), **chosen, **more})


def figures(
    executable: Executable,
    program_id: str,
    bound: BoundInputs,
    result: Result,
    options: RunOptions,
    compare: Sequence[Mapping[str, Any]] = (),
    seconds: float | None = None,
) -> RunReport:
    """Return the report of a run, without the trust in its time.

    `compare` are comparisons as JSON, `seconds` the host's time.
    """
    signature = signature_of(executable)
    uses = result.engines.items()
    target = options.target_of(executable)
    return RunReport(
        kernel=executable.name,
        target=executable.target,
        id=program_id,
        cycles=result.cycles,
        time_ns=result.time_ns,
        engines={name: EngineRow(use.busy_ns, use.instructions) for name, use in uses},
        instructions=result.instructions,
        dma_bytes=result.dma_bytes,
        precise_fp=options.precise,
        accumulate=options.accumulate or "measured",
        resources=resources(executable).as_json(),
        inputs=[
            InputRow(p.name, p.dtype.name, p.shape, bound.sources[p.name]) for p in signature.inputs
        ],
        outputs=_outputs(signature, result),
        compare=compare,
        prints=[
            PrintRow(p.core, p.prefix, p.dtype.name, p.values.shape, p.text) for p in result.printed
        ],
        prints_left_out=result.prints_left_out,
        seconds_host=seconds,
        launch_ns=target.figures["launch.before_ns"] + target.figures["launch.after_ns"],
        machine=target.machine or "default",
        unbounded=[
            f"{name} at {source_place(executable, place)}"
            for name, place in sorted(result.uncovered)
        ],
    )


def trust_in(result: Result, target: Target) -> Trust:
    """Return the trust in a run's time, which can take longer than a short run."""
    return trust_of(result.recorded.trace if result.recorded else None, target, _shares(result))


def _outputs(signature: Signature, result: Result) -> list[OutputRow]:
    rows = []
    for p in signature.outputs:
        array = result.outputs[p.name]
        stats, bound = stats_of(array, p.dtype), _bound(result, p.name, array, p.dtype)
        rows.append(OutputRow(p.name, p.dtype.name, p.shape, **vars(stats), error_bound=bound))
    return rows


def _shares(result: Result) -> dict[Engine, float]:
    """Return the share of the time that each engine was busy, on the core where it was busiest.

    The DMA engines of a core count together.
    """
    shares: dict[Engine, float] = {}
    for name, use in result.engines.items():
        engine = Engine(name.partition(".")[2])
        share = use.busy_ns / result.time_ns if result.time_ns else 0.0
        shares[engine] = max(shares.get(engine, 0.0), share)
    return shares


def _bound(result: Result, name: str, stored: NDArray[Any], dtype: DType) -> BoundRow | None:
    if result.bounds is None:
        return None
    bounds = result.bounds[name]
    finite = np.where(np.isfinite(bounds), bounds, -1.0)
    flat = int(finite.argmax())
    worst = float(finite.flat[flat])
    values = np.abs(numbers(stored, dtype).astype(np.float64))
    greatest = float(values[np.isfinite(values)].max(initial=0.0))
    at = tuple(int(i) for i in np.unravel_index(flat, bounds.shape))
    return BoundRow(
        worst if worst >= 0 else None,
        worst / greatest if worst >= 0 and greatest else None,
        at if worst >= 0 else (),
        int(np.count_nonzero(np.isinf(bounds))),
    )
