"""One command line for several ranks: `{rank}` in a path is the rank's number."""

from __future__ import annotations

from dataclasses import replace

from nkic.base.diagnostics import bad_value
from nkic.base.files import STANDARD
from nkic.cli.nki_run.options import CommandLine

MARK = "{rank}"
_SINGLE_PATHS = (
    "inputs",
    "outputs",
    "bless",
    "expected",
    "summary_json",
    "save_baseline",
    "baseline",
    "counters",
    "dump_all",
)  # options with one path
_REPEATED_OPTIONS = (
    "input",
    "output",
    "report",
    "trace",
    "dump_tensor",
    "expect_at",
)  # options that may be given several times


def lines_of(line: CommandLine) -> list[CommandLine]:
    """Return the command line of every rank.

    Raises `UsageFailed` if ranks would share a file that is written, or standard input.
    """
    if line.ranks == 1:
        _refuse_marks(line)
        return [line]
    _refuse_shared(line)
    return [_of_rank(line, rank) for rank in range(line.ranks)]


def _of_rank(line: CommandLine, rank: int) -> CommandLine:
    def substituted(text: str) -> str:
        return text.replace(MARK, str(rank))

    single = {
        name: substituted(path)
        for name in _SINGLE_PATHS
        if (path := getattr(line, name)) is not None
    }
    repeated = {name: tuple(map(substituted, getattr(line, name))) for name in _REPEATED_OPTIONS}
    return replace(line, **single, **repeated)  # type: ignore[arg-type]


def _refuse_marks(line: CommandLine) -> None:
    texts = [getattr(line, name) or "" for name in _SINGLE_PATHS] + [
        text for name in _REPEATED_OPTIONS for text in getattr(line, name)
    ]
    if any(MARK in text for text in texts):
        _bad(f"`{MARK}` in a path needs more than one rank", "add --ranks N")


def _refuse_shared(line: CommandLine) -> None:
    written = [
        (f"--{name.replace('_', '-')}", getattr(line, name))
        for name in ("outputs", "bless", "summary_json", "save_baseline", "counters", "dump_all")
    ]
    written += [("-O", text) for text in line.output]
    written += [("--report", text) for text in line.report]
    written += [("--trace", text) for text in line.trace]
    written += [("--dump-tensor", text) for text in line.dump_tensor]
    for option, path in written:
        if path is not None and MARK not in path and not path.endswith("=-") and path != STANDARD:
            _bad(f"{option} {path}: every rank would write to it", f"put {MARK} into the path")
    for option, path in (("--inputs", line.inputs), ("--expected", line.expected)):
        if path == STANDARD:
            _bad(f"{option} -: {line.ranks} ranks cannot all read it", f"write files with {MARK}")


def _bad(text: str, help: str) -> None:
    raise bad_value(text, help)
