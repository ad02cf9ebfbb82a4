"""Combinations of options that nki-run rejects."""

from __future__ import annotations

from collections.abc import Iterator

from nkic.base.diagnostics import UsageFailed, make
from nkic.base.files import STANDARD, real
from nkic.cli.common.conflicts import Given, fail, needs, refuse, refuse_all_but, refuse_pair
from nkic.cli.nki_run.options import CommandLine

_RULES = ("compare", "rtol", "atol", "max_ulp", "min_cosine", "min_pass_rate", "equal_nan")
# The modes that do something other than run a file, each with the options that it accepts and
# what it does instead.
_MODES = {
    "diff": (("fail_if", "report", "json"), "compares and does not run"),
    "print": ((), "prints and exits"),
    "calibrate": (("target",), "prints and exits"),
    "info": (("artifact", "json"), "inspects the file and does not run it"),
    "disasm": (("artifact", "json", "engine", "lines"), "inspects the file and does not run it"),
    "verify": (("artifact", "json"), "inspects the file and does not run it"),
}
_OF_MACHINE = ("json", "machine")  # options that --print machine accepts


def refuse_conflicts(line: CommandLine, given: Given) -> None:
    """Raise `UsageFailed` for the first conflict."""
    if "calibrate" not in given:
        needs(given, ["target"], "--calibrate")
    mode = next((mode for mode in _MODES if mode in given), None)
    if mode == "diff" and line.artifact is not None:
        fail("`--diff` takes two files", "leave out the third")
    if mode is not None:
        accepted, does = _MODES[mode]
        accepted = _OF_MACHINE if line.print == "machine" else accepted
        refuse_all_but(given, given[mode], (mode, *accepted), does)
    if line.artifact is None and mode not in ("diff", "print", "calibrate"):
        advice = "for example `nki-run kernel.neff --inputs data.npz`, or `nki-run -`"
        raise UsageFailed([make("missing-argument", "missing the compiled kernel", help=advice)])
    if mode is None:
        _refuse_in_run(line, given)


def _refuse_in_run(line: CommandLine, given: Given) -> None:
    """Reject options of a run that lack another option, or exclude each other."""
    needs(given, ["engine"], "--disasm")
    needs(given, ["lines"] if line.dump_all is None else [], "--disasm")
    if line.fuzz_order is None:
        needs(given, ["seed"], "--fuzz-order")
    if line.fail_if is not None and "+" in line.fail_if and line.baseline is None:
        needs(given, ["fail_if"], "--baseline")
    if not (line.annotate or line.report or line.save_baseline or line.baseline):
        needs(given, ["source"], "--annotate")
    if not line.timeline:
        needs(given, ["window"], "--timeline")
    if line.expected is None and not line.expect_at:
        needs(given, _RULES, "--expected")
    if line.expected is not None and line.bless is not None:
        refuse_pair("--bless", "--expected", "results are either accepted or compared")
    if line.outputs_as != "raw" and line.outputs is None and not line.output:
        refuse_pair(
            "--outputs-as", "no --outputs", "there is nothing to write", "add --outputs FILE.npz"
        )
    _refuse_sharing(line, given)


def _refuse_sharing(line: CommandLine, given: Given) -> None:
    """Check that standard input is read once, and that each output has a place of its own."""
    reads, writes = [*_reads(line)], [*_writes(line)]
    from_stdin = [option for option, path in reads if path == STANDARD]
    from_stdin += ["--break"] if line.stop_at else []
    if len(from_stdin) > 1:
        refuse_pair(from_stdin[0], from_stdin[1], "standard input can be read once")
    to_stdout = [option for option, path in writes if path == STANDARD]
    to_stdout += [f"--{n}" for n in ("json", "annotate", "timeline") if getattr(line, n)][:1]
    if line.json:
        why = "both go to standard output"
        refuse(given, "--json", ["annotate", "timeline", "stop_at"], why)
    if len(to_stdout) > 1:
        refuse_pair(to_stdout[0], to_stdout[1], "both go to standard output")
    options = {real(path): option for option, path in reads if _is_path(path)}
    for option, path in writes:
        location = real(path)
        if not _is_path(path):
            continue
        if location in options:
            fail(
                f"`{option}`: `{path}` is read by this run ({options[location]})",
                "choose another file",
            )
        options[location] = option


def _is_path(path: str) -> bool:
    return path != STANDARD and "\0" not in path


def _paths(line: CommandLine, *names: str) -> Iterator[tuple[str, str]]:
    """Yield these options with their paths, if given."""
    for name in names:
        if (path := getattr(line, name)) is not None:
            yield f"--{name.replace('_', '-')}", path


def _reads(line: CommandLine) -> Iterator[tuple[str, str]]:
    yield "the kernel", line.artifact or ""
    yield from _paths(line, "inputs", "expected", "baseline")
    yield from (("--source", path) for path in line.source)
    for text in line.input:
        before, at, path = text.partition("=@")
        if at:
            yield f"-i {before}", path if "=@" not in path else path.partition("=@")[2]


def _writes(line: CommandLine) -> Iterator[tuple[str, str]]:
    yield from _paths(line, "outputs", "bless", "summary_json", "save_baseline", "counters")
    yield from (("--dump-tensor", text.partition("=")[2]) for text in line.dump_tensor)
    yield from _paths(line, "dump_all")
    yield from (("--trace", path) for path in line.trace)
    yield from ((f"--report {k}", path) for k, _, path in (r.partition("=") for r in line.report))
    for text in line.output:
        name, _, path = text.partition("=")
        if path.startswith("@"):
            yield f"-O {name}", path[1:]
    if any(text.endswith("=-") for text in line.output):
        yield "-O", STANDARD  # several are printed one after another
