"""The options of `nki-run`, and their values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from typing import Any

import click

from nkic.base.text import size_of
from nkic.cli.common.help import adding, option
from nkic.machine.operators import ORDERS, SummationOrder
from nkic.machine.targets import DEFAULT, TARGETS


@dataclass(frozen=True)
class CommandLine:
    """The values of the command line, by option name."""

    artifact: str | None
    inputs: str | None
    input: tuple[str, ...]
    fill: str | None
    cast: bool
    outputs: str | None
    output: tuple[str, ...]
    outputs_as: str
    bless: str | None
    json: bool
    force: bool
    expected: str | None
    compare: tuple[str, ...]
    rtol: tuple[str, ...]
    atol: tuple[str, ...]
    max_ulp: tuple[str, ...]
    min_cosine: tuple[str, ...]
    min_pass_rate: tuple[str, ...]
    equal_nan: bool
    fail_on: str | None
    ranks: int
    max_cycles: int | None
    max_iterations: int | None
    timeout: float | None
    max_memory: int | None
    init_check: bool
    race_check: bool
    precise_fp: bool | None
    accumulate: SummationOrder | None
    report_error_bound: bool
    machine: str | None
    time: bool
    dump_tensor: tuple[str, ...]
    dump_all: str | None
    watch: tuple[str, ...]
    expect_at: tuple[str, ...]
    stop_at: tuple[str, ...]
    fuzz_order: int | None
    seed: int | None
    verdict: bool
    annotate: bool
    timeline: bool
    window: tuple[float, float] | None
    source: tuple[str, ...]
    summary_json: str | None
    report: tuple[str, ...]
    counters: str | None
    trace: tuple[str, ...]
    baseline: str | None
    save_baseline: str | None
    fail_if: str | None
    diff: tuple[str, str] | None
    info: bool
    disasm: bool
    verify: bool
    engine: str | None
    lines: tuple[int, int] | None
    print: str | None
    calibrate: str | None
    target: str | None


MAX_RANKS = 1024


def _size(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """Return `4GiB`, `500M` or `1000000` in bytes; units are powers of 1024."""
    if value is None:
        return None
    try:
        return size_of(value)
    except ValueError:
        message = f"`{value}` is not a size, such as 4GiB"
        raise click.BadParameter(message, ctx, param) from None


def _seconds(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    if value is not None and not 0 < value < float("inf"):
        raise click.BadParameter(f"`{value:g}` is not a number of seconds above 0", ctx, param)
    return value


def _lines(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    """Return `10:20` as first and last line, `10` as one line."""
    if value is None:
        return None
    match = re.fullmatch(r"(\d{1,9})(?::(\d{1,9}))?", value.strip())
    if match is None:
        raise click.BadParameter(f"`{value}` is not of the form FIRST:LAST", ctx, param)
    return int(match[1]), int(match[2] or match[1])


def _window(ctx: click.Context, param: click.Parameter, value: str | None) -> Any:
    """Return `10:20` or `10.5:20` as microseconds."""
    if value is None:
        return None
    number = r"(\d{1,12}(?:\.\d{1,6})?)"
    match = re.fullmatch(f"{number}:{number}", value.strip())
    if match is None or float(match[1]) >= float(match[2]):
        raise click.BadParameter(
            f"`{value}` is not of the form FROM:TO, such as 10:20.5", ctx, param
        )
    return float(match[1]), float(match[2])


_input, _output = partial(option, "Inputs"), partial(option, "Outputs")
_comparison, _run = partial(option, "Comparison"), partial(option, "Run")
_report, _debug = partial(option, "Reports"), partial(option, "Debugging")
_inspect = partial(option, "Inspect without running")
_OPTIONS = (
    click.argument("artifact", metavar="[KERNEL.neff]", required=False),
    _input(
        "--inputs",
        metavar="FILE.npz",
        common=True,
        help="Input arrays, named after the kernel's parameters; - is standard input.",
    ),
    _input(
        "-i",
        "--input",
        multiple=True,
        metavar="NAME=WHAT",
        common=True,
        help="One input, overriding the file's: @FILE.npy, f32[128,512]=@FILE.bin, 3.14, zeros, "
        "ones, iota, randn(seed), uniform(lo,hi,seed), const(value), poison.",
    ),
    _input(
        "--fill",
        metavar="HOW",
        common=True,
        help="Generate the missing inputs: zeros, randn(0), or another of the above.",
    ),
    _input(
        "--cast",
        is_flag=True,
        help="Convert inputs of another type, and report the rounding error.",
    ),
    _output(
        "--outputs",
        metavar="FILE.npz",
        common=True,
        help="Write all outputs, in order; - is standard output.",
    ),
    _output(
        "-O",
        "--output",
        multiple=True,
        metavar="NAME=@FILE.npy",
        help="Write one output; NAME=- prints its numbers.",
    ),
    _output(
        "--outputs-as",
        type=click.Choice(("raw", "f32")),
        default="raw",
        show_default=True,
        help="f32: write bfloat16 and other floats that NumPy lacks as float32.",
    ),
    _output(
        "--bless",
        metavar="FILE.npz",
        help="Write all outputs for a later --expected, and a record of how they were made.",
    ),
    _output(
        "--json",
        is_flag=True,
        common=True,
        help="Print the report of the run as JSON; also for --info, --disasm, --verify.",
    ),
    _output("--force", is_flag=True, help="Write binary data even to a terminal."),
    _comparison(
        "--expected",
        metavar="FILE.npz",
        common=True,
        help="Compare the outputs with these arrays; exit with code 1 if they differ.",
    ),
    _comparison(
        "--compare",
        multiple=True,
        metavar="[NAME=]MODE",
        help="close (default), range, ulp, cosine, exact; skip ignores an output.",
    ),
    _comparison(
        "--rtol", multiple=True, metavar="[NAME=]X", help="Relative tolerance.  [default: by dtype]"
    ),
    _comparison(
        "--atol", multiple=True, metavar="[NAME=]X", help="Absolute tolerance.  [default: by dtype]"
    ),
    _comparison(
        "--max-ulp",
        multiple=True,
        metavar="[NAME=]N",
        help="For ulp: the maximum distance in ULPs.",
    ),
    _comparison(
        "--min-cosine", multiple=True, metavar="[NAME=]X", help="For cosine: the minimum cosine."
    ),
    _comparison(
        "--min-pass-rate",
        multiple=True,
        metavar="[NAME=]X",
        help="Share of the elements that must match.  [default: 1]",
    ),
    _comparison("--equal-nan", is_flag=True, help="Treat NaN as equal to NaN."),
    _comparison(
        "--fail-on", metavar="nan,inf", help="Exit with code 5 if an output contains these."
    ),
    _run(
        "--ranks",
        type=click.IntRange(1, MAX_RANKS),
        default=1,
        metavar="N",
        help="Run the kernel as this many ranks together, for nki.collectives; {rank} in a path is "
        "the rank's number.",
    ),
    _run(
        "--max-cycles",
        type=click.IntRange(1),
        metavar="N",
        help="Stop after this many cycles of simulated time.",
    ),
    _run(
        "--max-iterations",
        type=click.IntRange(1),
        metavar="N",
        help="Stop a loop with a run-time trip count after this many iterations.  "
        "[default: 1000000]",
    ),
    _run(
        "--timeout",
        type=float,
        callback=_seconds,
        metavar="SECONDS",
        help="Stop after this much wall-clock time.",
    ),
    _run(
        "--max-memory",
        callback=_size,
        metavar="SIZE",
        help="Do not start a run that needs more memory, such as 4GiB.  [default: this machine's]",
    ),
    _run(
        "--init-check/--no-init-check",
        default=True,
        help="Reading uninitialised bytes is an error.  [default: init-check]",
    ),
    _run(
        "--race-check",
        is_flag=True,
        help="Treat races as errors: unordered accesses of one core to any memory, and of two "
        "cores to shared HBM, including those at run-time offsets.",
    ),
    _run(
        "--precise-fp/--no-precise-fp",
        default=None,
        help="Off: keep float32 between instructions, to distinguish wrong logic from rounding. "
        "[env: NKI_PRECISE_FP; default: precise-fp]",
    ),
    _run(
        "--accumulate",
        type=click.Choice(ORDERS),
        help="How sums are accumulated: in float64, rounded once; sequentially in float32; or "
        "pairwise in float32. Results that differ between these depend on an order that is "
        "not published.  [default: as measured on a device, else exact]",
    ),
    _run(
        "--report-error-bound",
        is_flag=True,
        help="Report how far each output may be from exact arithmetic, for any order of float32 "
        "sums. Takes several times as long.",
    ),
    _run(
        "--machine",
        metavar="FILE.toml",
        help="Use timing figures other than the target's own; --print machine lists them all.",
    ),
    _run("--time", is_flag=True, help="Report how long the simulation took on this machine."),
    _report(
        "--verdict/--no-verdict",
        default=True,
        help="Report what bounds the run, which lines it spends its time in, and what would help "
        "most, found by simulating the run again with that change.  [default: verdict]",
    ),
    _report(
        "--annotate",
        is_flag=True,
        common=True,
        help="Print the kernel's source with the cost of each line.",
    ),
    _report(
        "--timeline",
        is_flag=True,
        common=True,
        help="Print when each engine and queue was busy, and what it waited for.",
    ),
    _report(
        "--window",
        callback=_window,
        metavar="FROM:TO",
        help="For --timeline: only this part of the run, in microseconds.",
    ),
    _report(
        "--source",
        multiple=True,
        metavar="KERNEL.py",
        help="The text of a source file, for reports on kernels compiled without --embed-source; "
        "it must be the text that was compiled.",
    ),
    _report(
        "--summary-json",
        metavar="FILE",
        help="Write the figures of the run under the names of Neuron's profiler, where the "
        "meaning is the same; - is standard output.",
    ),
    _report(
        "--trace",
        multiple=True,
        metavar="FILE",
        common=True,
        help="Write every instruction with its times and what it waited for, for ui.perfetto.dev: "
        "FILE.json or FILE.json.gz, or FILE.pftrace, which needs the package perfetto.",
    ),
    _report(
        "--counters",
        metavar="FILE.parquet",
        help="Write a table with a row for every instruction; needs the package pyarrow.",
    ),
    _report(
        "--report",
        multiple=True,
        metavar="KIND=FILE",
        help="Write a report: html, one self-contained page; json, for programs, --diff and "
        "--baseline; md, for pull requests.",
    ),
    _report(
        "--save-baseline",
        metavar="FILE.json",
        help="Write the profile of this run, for comparison with later ones.",
    ),
    _report(
        "--baseline", metavar="FILE.json", help="Report how this run differs from the one in FILE."
    ),
    _report(
        "--fail-if",
        metavar="RULES",
        help="Exit with code 1 if a figure exceeds a limit: cycles>+2%,sbuf_peak>24MiB; a limit "
        "with + is relative to --baseline.",
    ),
    _debug(
        "--dump-tensor",
        multiple=True,
        metavar="NAME@LINE=FILE.npz",
        help="Write the contents of a tensor after each write by this line of the kernel.",
    ),
    _debug(
        "--dump-all",
        metavar="DIR",
        help="Write the contents of every tensor after each write to it, with an index.json of the "
        "line, iteration, engine and time of each; --lines restricts it to some lines.",
    ),
    _debug(
        "--watch",
        multiple=True,
        metavar="NAME[SLICE]",
        help="Report each change to a tensor, or to a part such as acc[0:4, 2].",
    ),
    _debug(
        "--expect-at",
        multiple=True,
        metavar="LINE=FILE.npz",
        help="Compare tensors, after this line, with the arrays of the same names in FILE; exit "
        "with code 1 at the first line where they differ. Tolerances are those of --expected.",
    ),
    _debug(
        "--break",
        "stop_at",
        multiple=True,
        metavar="[FILE:]LINE[:N]",
        help="Stop before an instruction of this line (N: the N-th one executed), and read "
        "commands from standard input: print NAME, where, engines, queues, memory, step, next, "
        "continue, quit; `help` explains them.",
    ),
    _debug(
        "--fuzz-order",
        type=click.IntRange(1, 1_000_000),
        metavar="N",
        help="Run N more times, in other orders that the file's semaphores allow; exit with code 5 "
        "and name the two racing lines if one of them gives other outputs.",
    ),
    _debug(
        "--seed",
        type=click.IntRange(0),
        metavar="S",
        help="For --fuzz-order: the seed of the orders.  [default: 0]",
    ),
    _inspect(
        "--diff",
        nargs=2,
        metavar="A B",
        help="Report what differs between two profiles (--report json=FILE), or two compiled "
        "kernels.",
    ),
    _inspect("--info", is_flag=True, common=True, help="Describe the file."),
    _inspect("--disasm", is_flag=True, common=True, help="List the program in the file."),
    _inspect("--verify", is_flag=True, help="Check the file, and name each layer that passes."),
    _inspect("--engine", metavar="NAME", help="For --disasm: only this engine, e.g. vector."),
    _inspect(
        "--lines",
        callback=_lines,
        metavar="FIRST:LAST",
        help="For --disasm: only the instructions of these source lines; for --dump-all: only "
        "their writes.",
    ),
    _inspect(
        "--print",
        type=click.Choice(("machine", "microkernels")),
        help="Print and exit. machine: the timing figures of every target, with their evidence and "
        "source; microkernels: a Python file that runs and profiles kernels on a device, for "
        "--calibrate.",
    ),
    _inspect(
        "--calibrate",
        metavar="FOLDER",
        help="Print a machine file with the figures that best fit the profiles in FOLDER.",
    ),
    _inspect(
        "--target",
        type=click.Choice(tuple(TARGETS)),
        help=f"For --calibrate: the target that was profiled.  [default: {DEFAULT.name}]",
    ),
)

own_options = adding(_OPTIONS)
