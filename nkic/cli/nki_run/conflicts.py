"""Options that make no sense together: an error, because one of them would be ignored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NoReturn

from nkic.base.diagnostics import UsageFailed, make
from nkic.base.files import STANDARD, real
from nkic.cli.nki_run.options import CommandLine

_MODES = ("info", "disasm", "verify")
_RULES = ("compare", "rtol", "atol", "max_ulp", "min_cosine", "min_pass_rate", "equal_nan")
_ABOUT_RUNNING = (
    *("inputs", "input", "fill", "cast", "outputs", "output", "bless", "expected", *_RULES),
    *(
        "fail_on",
        "max_cycles",
        "max_turns",
        "timeout",
        "max_memory",
        "precise_fp",
        "accumulate",
        "report_error_bound",
        "machine",
        "race_check",
        "time",
        *("dump_tensor", "dump_all", "watch", "expect_at", "stop_at", "fuzz_order", "seed"),
        "force",
        *("annotate", "timeline", "window", "source", "summary_json", "report", "trace"),
        *("baseline", "save_baseline", "fail_if", "diff", "counters"),
    ),
)
_ABOUT_LISTING = ("engine", "lines")


def refuse_conflicts(line: CommandLine) -> None:
    """Raises `UsageFailed` for the first conflict."""
    if line.calibrate is None:
        _needs(line, ("target",), "--calibrate")
    if line.diff is not None:
        _refuse_beside_diff(line)
        return
    if line.print is not None or line.calibrate is not None:
        _refuse_running(line)
        return
    if line.artifact is None:
        advice = "for example `nki-run kernel.neff --inputs data.npz`, or `nki-run -`"
        raise UsageFailed([make("missing-argument", "missing the compiled kernel", help=advice)])
    modes = [mode for mode in _MODES if getattr(line, mode)]
    for mode in modes:
        others = [other for other in modes if other != mode]
        _refuse(
            line,
            f"--{mode}",
            [*others, *_ABOUT_RUNNING],
            "it inspects the file and does not run it",
        )
        if line.ranks != 1:
            _say(f"--{mode}", "--ranks", "it inspects the file and does not run it")
        if not line.init_check:
            _say(f"--{mode}", "--no-init-check", "it inspects the file and does not run it")
        if not line.verdict:
            _say(f"--{mode}", "--no-verdict", "it inspects the file and does not run it")
    if not line.disasm:
        _needs(line, ["engine"], "--disasm")
        _needs(line, ["lines"] if line.dump_all is None else [], "--disasm")
    if line.fuzz_order is None:
        _needs(line, ["seed"], "--fuzz-order")
    if line.fail_if is not None and "+" in line.fail_if and line.baseline is None:
        _needs(line, ["fail_if"], "--baseline")
    if not (line.annotate or line.report or line.save_baseline or line.baseline):
        _needs(line, ["source"], "--annotate")
    if not line.timeline:
        _needs(line, ["window"], "--timeline")
    if line.expected is None and not line.expect_at:
        _needs(line, _RULES, "--expected")
    if line.expected is not None and line.bless is not None:
        _say("--bless", "--expected", "results are either accepted or compared")
    if line.outputs_as != "raw" and line.outputs is None and not line.output:
        _say("--outputs-as", "no --outputs", "there is nothing to write", "add --outputs FILE.npz")
    _refuse_sharing(line)


def _refuse_running(line: CommandLine) -> None:
    """--print and --calibrate take nothing else; only --print machine, a machine file, whose
    figures it then shows.
    """
    option = "--print" if line.print is not None else "--calibrate"
    shown = "machine" if line.print == "machine" else ""
    others = [name for name in _ABOUT_RUNNING if name != shown]
    others += ["calibrate"] if option == "--print" else []
    others += [] if shown else ["json"]
    if line.artifact is not None:
        _say(option, line.artifact, "it prints and does not run")
    _refuse(line, option, [*_MODES, *others, *_ABOUT_LISTING], "it prints and exits")


_BESIDE_DIFF = ("diff", "fail_if", "report")


def _refuse_beside_diff(line: CommandLine) -> None:
    """--diff compares what is there, and runs nothing."""
    if line.artifact is not None:
        _fail("`--diff` takes two files", "leave out the third")
    every = (*_MODES, *_ABOUT_RUNNING, *_ABOUT_LISTING, *_RULES, "print", "calibrate")
    others = [name for name in every if name not in _BESIDE_DIFF]
    _refuse(line, "--diff", others, "it compares and does not run")


def _refuse(line: CommandLine, option: str, others: Iterable[str], why: str) -> None:
    for name in others:
        if getattr(line, name) not in (None, False, ()):
            _say(option, _word(name), why)


def _needs(line: CommandLine, names: Iterable[str], needed: str) -> None:
    for name in names:
        if getattr(line, name) not in (None, False, ()):
            option = _word(name)
            _fail(f"`{option}` needs `{needed}`", f"add `{needed}`, or leave out `{option}`")


def _word(name: str) -> str:
    return "--break" if name == "stop_at" else f"--{name.replace('_', '-')}"


def _refuse_sharing(line: CommandLine) -> None:
    """Standard input is read once; an output goes where nothing else is."""
    reads, writes = [*_reads(line)], [*_writes(line)]
    standard = [option for option, path in reads if path == STANDARD]
    standard += ["--break"] if line.stop_at else []
    if len(standard) > 1:
        _say(standard[0], standard[1], "standard input can be read once")
    printed = [option for option, path in writes if path == STANDARD]
    printed += [f"--{n}" for n in ("json", "annotate", "timeline") if getattr(line, n)][:1]
    if line.json:
        both = "both go to standard output"
        _refuse(line, "--json", ["annotate", "timeline", "stop_at"], both)
    if len(printed) > 1:
        _say(printed[0], printed[1], "both go to standard output")
    read = {real(path): option for option, path in reads if _is_path(path)}
    for option, path in writes:
        at = real(path)
        if not _is_path(path):
            continue
        if at in read:
            _fail(f"`{option}`: `{path}` is read by this run ({read[at]})", "choose another file")
        read[at] = option


def _is_path(path: str) -> bool:
    return path != STANDARD and "\0" not in path


def _reads(line: CommandLine) -> Iterator[tuple[str, str]]:
    yield "the kernel", line.artifact or ""
    named = [("--inputs", line.inputs), ("--expected", line.expected)]
    named += [("--baseline", line.baseline)]
    named += [("--source", path) for path in line.source]
    yield from ((option, path) for option, path in named if path is not None)
    for text in line.input:
        before, at, path = text.partition("=@")
        if at:
            yield f"-i {before}", path if "=@" not in path else path.partition("=@")[2]


def _writes(line: CommandLine) -> Iterator[tuple[str, str]]:
    named = [("--outputs", line.outputs), ("--bless", line.bless)]
    named += [("--summary-json", line.summary_json), ("--save-baseline", line.save_baseline)]
    named.append(("--counters", line.counters))
    yield from ((option, path) for option, path in named if path is not None)
    yield from (("--dump-tensor", text.partition("=")[2]) for text in line.dump_tensor)
    if line.dump_all is not None:
        yield "--dump-all", line.dump_all
    yield from (("--trace", path) for path in line.trace)
    yield from ((f"--report {k}", path) for k, _, path in (r.partition("=") for r in line.report))
    for text in line.output:
        name, _, path = text.partition("=")
        if path.startswith("@"):
            yield f"-O {name}", path[1:]
    if any(text.endswith("=-") for text in line.output):
        yield "-O", STANDARD  # several print one after the other


def _say(option: str, other: str, why: str, help: str = "") -> NoReturn:
    _fail(
        f"`{option}` and `{other}` cannot be used together: {why}", help or f"leave out `{other}`"
    )


def _fail(text: str, help: str) -> NoReturn:
    raise UsageFailed([make("conflicting-options", text, help=help)])
