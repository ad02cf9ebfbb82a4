"""The options of `nki-run` and its subcommands, their values, the combinations that it rejects
beyond what their rows say, and the command lines of ranks: `{rank}` in a path is the rank's number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from nkic.base.diagnostics import bad_value
from nkic.base.files import STANDARD, real
from nkic.cli.common.options import (
    Given,
    after_equals,
    fail,
    is_named,
    machine_option,
    named,
    option,
    paths,
    refuse_by_table,
    refuse_excluded,
    refuse_pair,
    rows,
    whole,
)

MAX_RANKS = 1024
REPORTS = {
    "annotate": "the kernel's source with the cost of each line",
    "timeline": "when each engine and queue was busy, and what it waited for; "
    "timeline@10:20 for a part, in microseconds",
    "html": "one self-contained page",
    "md": "for pull requests",
    "json": "as --json: for programs, `nki-run compare` and --baseline",
    "neuron": "figures under the names of Neuron's profiler, where the meaning is the same",
    "trace": "every instruction, for ui.perfetto.dev: FILE.json, FILE.json.gz, or FILE.pftrace, "
    "which needs the package perfetto",
    "counters": "FILE.parquet with a row for every instruction; needs the package pyarrow",
}
TO_STDOUT = ("annotate", "timeline")  # the reports that are written to standard output by default
ACCUMULATE = {
    "exact": "in float64, rounded once",
    "float32": "one after the other in float32",
    "pairwise": "in pairs in float32",
}
PRINTS = {
    "machine": "the timing figures of every target, with their evidence and source",
    "microkernels": "a Python file that runs and profiles kernels on a device",
}
TARGETS = {"trn1": "", "trn2": "", "trn3": ""}

_inputs, _outputs = partial(option, group="Inputs"), partial(option, group="Outputs")
_checks, _run = partial(option, group="Checks"), partial(option, group="Run")
_profile = partial(option, group="Reports", of="profile debug", common=True)
_debug = partial(option, group="Debugging", of="debug", common=True)
_inspect = partial(option, group="Inspect", common=True)
_json = partial(option, "--json", "Print what is to be printed as one JSON object.", common=True)
_machine = partial(machine_option, reads=whole)
_signed = partial(
    option,
    "--require-signature KEY",
    "Refuse a file that is not signed (`nkic --sign`) with the private key of this public key, PEM "
    "or OpenSSH. Needs the package cryptography.",
    reads=whole,
)


@dataclass(frozen=True, eq=False, repr=False)
class CommandLine:
    """The words of `run`, and of `profile` and `debug`, which run a kernel, too."""

    artifact: str = option("KERNEL.neff", "The compiled kernel.", reads=whole)
    report: tuple[str, ...] = _profile(
        "--report KIND[=FILE]",
        "Write a report, by default annotate and timeline to standard output.",
        values=REPORTS,
        writes=after_equals,
    )
    against: str | None = _profile(
        "--against PROFILE",
        "Compare, instruction by instruction, with the vendor's profile of the kernel: a folder "
        "with Instruction.parquet, or an Instruction.csv or JSON file.",
        reads=whole,
    )
    source: tuple[str, ...] = _profile(
        "--source KERNEL.py",
        "The text of a source file, for reports on kernels compiled without --embed-source; it "
        "must be the text that was compiled.",
        reads=whole,
    )
    stop_at: tuple[str, ...] = _debug(
        "--break [FILE:]LINE[:N]",
        "Stop before an instruction of this line (N: the N-th one executed), and read commands "
        "from standard input: print NAME, where, engines, queues, memory, step, next, continue, "
        "quit; `help` explains them.",
    )
    changes: tuple[str, ...] = _debug(
        "--changes NAME[SLICE]", "Report each change to a tensor, or to a part such as acc[0:4, 2]."
    )
    dump: tuple[str, ...] = _debug(
        "--dump WHAT=PATH",
        "Write the contents of tensors after each write. acc@12=FILE.npz: of `acc`, by line 12; "
        "all=DIR: of every tensor, with an index.json of the line, iteration, engine and time; "
        "all@10:20=DIR: by these lines.",
        writes=after_equals,
    )
    expect_at: tuple[str, ...] = _debug(
        "--expect-at LINE=FILE.npz",
        "Compare tensors, after this line, with the arrays of the same names in FILE; exit with "
        "code 1 at the first line where they differ. Tolerances are those of --expected.",
        reads=after_equals,
    )
    fuzz_order: str | None = _debug(
        "--fuzz-order N[:SEED]",
        "Run N more times, in other orders that the file's semaphores allow; exit with code 5 and "
        "name the two racing lines if one of them gives other outputs.  [default of SEED: 0]",
    )
    inputs: tuple[str, ...] = _inputs(
        "-i, --inputs FILE|NAME=WHAT",
        "Input arrays, named after the kernel's parameters (- is standard input); or one input, "
        "overriding the file's: @FILE.npy, f32[128,512]=@FILE.bin, 3.14, zeros, ones, iota, "
        "randn(seed), uniform(lo,hi,seed), const(value), poison.",
        common=True,
        reads=named,
    )
    fill: str | None = _inputs(
        "--fill HOW",
        "Generate the missing inputs: zeros, randn(0), or another of the above.",
        common=True,
        complete=lambda _: dict.fromkeys(("zeros", "ones", "iota", "poison", "randn(0)"), ""),
    )
    cast: bool = _inputs("--cast", "Convert inputs of another type, and report the rounding error.")
    outputs: tuple[str, ...] = _outputs(
        "-o, --outputs FILE|NAME=@FILE",
        "Write all outputs, in order (- is standard output), or one; NAME=- prints its numbers.",
        common=True,
        writes=named,
    )
    outputs_as: str = _outputs(
        "--outputs-as",
        "f32: write bfloat16 and other floats that NumPy lacks as float32.",
        values={"raw": "", "f32": ""},
        only=True,
        default="raw",
        needs=("outputs",),
    )
    bless: str | None = _outputs(
        "--bless FILE.npz",
        "Write all outputs for a later --expected, and a record of how they were made.",
        writes=whole,
        excludes={"expected": "results are either accepted or compared"},
    )
    json: bool = _json(group="Outputs")
    force: bool = _outputs("--force", "Write binary data even to a terminal.")
    expected: str | None = _checks(
        "--expected FILE.npz",
        "Compare the outputs with these arrays; exit with code 1 if they differ.",
        common=True,
        reads=whole,
    )
    compare: tuple[str, ...] = _checks(
        "--compare [NAME=]RULE,…",
        "How: close (default), range, ulp, cosine, l2, exact; skip ignores an output; with "
        "max-ulp:N, min-cosine:X, max-l2:X, pass-rate:X (share of the elements that must match), "
        "equal-nan.",
        needs=("expected", "expect_at"),
    )
    rtol: tuple[str, ...] = _checks(
        "--rtol [NAME=]X",
        "Relative tolerance.  [default: by dtype]",
        needs=("expected", "expect_at"),
    )
    atol: tuple[str, ...] = _checks(
        "--atol [NAME=]X",
        "Absolute tolerance.  [default: by dtype]",
        needs=("expected", "expect_at"),
    )
    baseline: str | None = _checks(
        "--baseline FILE.json",
        "Report how this run differs from an earlier one, whose --json is in FILE.",
        reads=whole,
    )
    fail_if: str | None = _checks(
        "--fail-if RULES",
        "Fail if a figure exceeds a limit: cycles>+2%,sbuf_peak>24MiB,psum_banks>6 (exit code 1; "
        "with +, relative to --baseline), or if an output has nan or inf: nan,inf (exit code 5).",
    )
    init_check: bool = _checks(
        "--init-check/--no-init-check", "Reading uninitialised bytes is an error.", default=True
    )
    race_check: bool | None = _checks(
        "--race-check/--no-race-check",
        "Treat races as errors. On: unordered accesses of one core to any memory, and of two cores "
        "to shared HBM, including those at run-time offsets. Off: none. By default: of one core.",
    )
    require_signature: str | None = _signed(group="Checks")
    ranks: int = _run(
        "--ranks N",
        "Run the kernel as this many ranks together, for nki.collectives; {rank} in a path is the "
        "rank's number.",
        between=(1, MAX_RANKS),
        default=1,
        tells=False,
    )
    precise_fp: bool | None = _run(
        "--precise-fp/--no-precise-fp",
        "Off: keep float32 between instructions, to distinguish wrong logic from rounding. [env: "
        "NKI_PRECISE_FP; default: precise-fp]",
    )
    accumulate: str | None = _run(
        "--accumulate",
        "How sums are accumulated: in float64, rounded once; sequentially in float32; or pairwise "
        "in float32. Results that differ between these depend on an order that is not published.  "
        "[default: as measured on a device, else exact]",
        values=ACCUMULATE,
        only=True,
    )
    report_error_bound: bool = _run(
        "--report-error-bound",
        "Report how far each output may be from exact arithmetic, for any order of float32 sums. "
        "Takes several times as long.",
    )
    machine: str | None = _machine(group="Run")
    verdict: bool = _run(
        "--verdict/--no-verdict",
        "Report what bounds the run, which lines it spends its time in, and what would help most, "
        "found by simulating the run again with that change.",
        default=True,
    )
    time: bool = _run("--time", "Report how long the work took on this machine.")

    @property
    def input_files(self) -> list[str]:
        return [word for word in self.inputs if not is_named(word)]


@dataclass(frozen=True, eq=False, repr=False)
class CompareLine:
    before: str = option("A", "The first file.", reads=whole)
    after: str = option("B", "The second file.", reads=whole)
    fail_if: str | None = option(
        "--fail-if RULES",
        "Fail if a figure exceeds a limit: cycles>+2%,sbuf_peak>24MiB (exit code 1; of B, and with"
        " + relative to A).",
        group="Checks",
        common=True,
    )
    report: tuple[str, ...] = option(
        "--report md=FILE",
        "Write a report.",
        group="Outputs",
        common=True,
        values={"md": "for pull requests"},
    )
    json: bool = _json(group="Outputs")


@dataclass(frozen=True, eq=False, repr=False)
class EqualLine:
    before: str = option("A.neff", "The first kernel.", reads=whole)
    after: str = option("B.neff", "The second kernel.", reads=whole)
    batch: bool = option(
        "--batch",
        "The files are one kernel for two numbers of rows: tell whether a row gets the same bits "
        "in both, whatever the other rows hold.",
        group="Checks",
        common=True,
    )
    require_signature: str | None = _signed(group="Checks", common=True)
    json: bool = _json(group="Outputs")


@dataclass(frozen=True, eq=False, repr=False)
class InspectLine:
    artifact: str = option("KERNEL.neff", "The compiled kernel.", modes="check", reads=whole)
    disasm: bool = _inspect("--disasm", "List the program, instead of describing it.")
    check: bool = _inspect(
        "--check",
        "Report the errors in the file; name each layer that passes.",
        does="only checks the file",
    )
    engine: str | None = _inspect(
        "--engine NAME", "For --disasm: only this engine, e.g. vector.", needs=("disasm",)
    )
    lines: str | None = _inspect(
        "--lines FIRST:LAST",
        "For --disasm: only the instructions of these source lines.",
        needs=("disasm",),
    )
    require_signature: str | None = _signed(group="Inspect", modes="check")
    json: bool = _json(group="Inspect", modes="check")


@dataclass(frozen=True, eq=False, repr=False)
class CalibrateLine:
    folder: str | None = option(
        "[FOLDER]", "The folder of profiles, or rows.csv with kernels and their times.", modes=""
    )
    figures: str | None = option(
        "--figures NAMES",
        "For rows.csv: the figures to fit, e.g. dma.engine_rate,vector.interval_sbuf.",
        group="Calibrate",
    )
    target: str | None = option(
        "--target",
        "The target that was profiled.  [default: trn2]",
        group="Calibrate",
        values=TARGETS,
        only=True,
        common=True,
    )
    print: str | None = option(
        "--print WHAT",
        "Print a table and exit.",
        group="Calibrate",
        values=PRINTS,
        common=True,
        does="prints a table and exits",
    )
    json: bool = _json(group="Calibrate", modes="machine", needs=("print",))
    machine: str | None = _machine(group="Calibrate", modes="machine", needs=("print",))


OLD = {
    "--input": "--inputs {}",
    "-O": "--outputs {}",
    "--output": "--outputs {}",
    "--max-ulp": "--compare {name}max-ulp:{rest}",
    "--min-cosine": "--compare {name}min-cosine:{rest}",
    "--min-pass-rate": "--compare {name}pass-rate:{rest}",
    "--equal-nan": "--compare equal-nan",
    "--fail-on": "--fail-if {}",
    "--max-cycles": "--limit cycles={}",
    "--max-iterations": "--limit iterations={}",
    "--max-memory": "--limit memory={}",
    "--timeout": "--limit time={}",
    "--crash-dir": "!NKIC_CRASH_DIR in the environment",
    "--annotate": "--report annotate",
    "--timeline": "--report timeline",
    "--window": "!--report timeline@FROM:TO",
    "--summary-json": "--report neuron={}",
    "--save-baseline": "--report json={}",
    "--counters": "--report counters={}",
    "--trace": "--report trace={}",
    "--dump-tensor": "--dump {}",
    "--dump-all": "--dump all={}",
    "--watch": "!--changes NAME[SLICE]",
    "--seed": "!--fuzz-order N:SEED",
    "--diff": "compare {} {}",
    "--info": "inspect",
    "--disasm": "inspect --disasm",
    "--verify": "inspect --check",
    "--print": "calibrate --print {}",
    "--calibrate": "calibrate {}",
}


TABLE = rows(CommandLine)
MARK = "{rank}"
# The files that all ranks share.
_OF_ALL_RANKS = ("artifact", "source", "machine", "require_signature")
_PATHS = [n for n, row in TABLE.items() if (row.reads or row.writes) and n not in _OF_ALL_RANKS]


def refuse_conflicts(line: CommandLine, given: Given) -> None:
    refuse_by_table(TABLE, given)
    if line.fail_if is not None and "+" in line.fail_if and line.baseline is None:
        fail("`--fail-if` needs `--baseline` for a limit with +", "add `--baseline`")
    refuse_excluded(TABLE, given)
    _refuse_sharing(line)


def _refuse_sharing(line: CommandLine) -> None:
    """Check that standard input is read once, and that each output has a place of its own."""
    reads, writes = [*paths(line, "reads")], [*paths(line, "writes")]
    from_stdin = [by for by, path in reads if path == STANDARD]
    from_stdin += ["--break"] if line.stop_at else []
    if len(from_stdin) > 1:
        refuse_pair(from_stdin[0], from_stdin[1], "standard input can be read once")
    _refuse_mixing(line, [by for by, path in writes if path == STANDARD])
    written: dict[Path, str] = {}
    for by, path in writes:
        if not _is_path(path):
            continue
        if other := written.get(real(path)):
            fail(f"`{by}`: `{path}` is also written by {other}", "choose another file")
        written[real(path)] = by


def _refuse_mixing(line: CommandLine, writers: Sequence[str]) -> None:
    """Check that at most one option writes to standard output: reports for people, and printed
    outputs, follow one another.
    """
    people = [f"--report {kind}" for kind in TO_STDOUT]
    to_stdout = ["--json"] * line.json + ["--break"] * bool(line.stop_at) * line.json
    to_stdout += [by for by in dict.fromkeys(writers) if by not in people]
    to_stdout += [by for by in writers if by in people][:1]
    if len(to_stdout) > 1:
        refuse_pair(to_stdout[0], to_stdout[1], "both go to standard output")


def _is_path(path: str) -> bool:
    return path not in ("", STANDARD) and "\0" not in path


# ---- ranks ---------------------------------------------------------------------------------


def lines_of(line: CommandLine) -> list[CommandLine]:
    """Return the command line of every rank.

    Raises `UsageFailed` if ranks would share a file that is written, or standard input.
    """
    if line.ranks == 1:
        if any(MARK in path for use in ("reads", "writes") for _, path in paths(line, use)):
            raise bad_value(f"`{MARK}` in a path needs more than one rank", "add --ranks N")
        return [line]
    _refuse_shared(line)
    return [_of_rank(line, rank) for rank in range(line.ranks)]


def _of_rank(line: CommandLine, rank: int) -> CommandLine:
    def substituted(value: str | tuple[str, ...] | None) -> Any:
        if isinstance(value, tuple):
            return tuple(map(substituted, value))
        return value.replace(MARK, str(rank)) if value is not None else None

    return replace(line, **{name: substituted(getattr(line, name)) for name in _PATHS})


def _refuse_shared(line: CommandLine) -> None:
    for by, path in paths(line, "writes"):
        if MARK not in path and path not in ("", STANDARD):
            text = f"{by} {path}: every rank would write to it"
            raise bad_value(text, f"put {MARK} into the path")
    for by, path in paths(line, "reads"):
        if path == STANDARD and by != "the kernel":
            text = f"{by} -: {line.ranks} ranks cannot all read it"
            raise bad_value(text, f"write files with {MARK}")
