"""Combinations of options that nki-run rejects, beyond what the table says, and the command lines
of ranks: `{rank}` in a path is the rank's number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from nkic.base.diagnostics import bad_value
from nkic.base.files import STANDARD, real
from nkic.cli.common.conflicts import Given, fail, refuse_by_table, refuse_pair
from nkic.cli.common.table import rows
from nkic.cli.nki_run.options import TO_STDOUT, CommandLine

TABLE = rows(CommandLine)
MARK = "{rank}"
# The files that all ranks share.
_SHARED = ("artifact", "source", "machine")
_PATHS = [n for n, row in TABLE.items() if (row.reads or row.writes) and n not in _SHARED]


def refuse_conflicts(line: CommandLine, given: Given) -> None:
    """Raise `UsageFailed` for the first conflict among the options of a run."""
    refuse_by_table(TABLE, given)
    if line.fail_if is not None and "+" in line.fail_if and line.baseline is None:
        fail("`--fail-if` needs `--baseline` for a limit with +", "add `--baseline`")
    if line.expected is not None and line.bless is not None:
        refuse_pair("--bless", "--expected", "results are either accepted or compared")
    _refuse_sharing(line)


def _refuse_sharing(line: CommandLine) -> None:
    """Check that standard input is read once, and that each output has a place of its own."""
    reads, writes = [*paths(line, "reads")], [*paths(line, "writes")]
    from_stdin = [option for option, path in reads if path == STANDARD]
    from_stdin += ["--break"] if line.stop_at else []
    if len(from_stdin) > 1:
        refuse_pair(from_stdin[0], from_stdin[1], "standard input can be read once")
    _refuse_mixing(line, [option for option, path in writes if path == STANDARD])
    options = {real(path): option for option, path in reads if _is_path(path)}
    for option, path in writes:
        if not _is_path(path):
            continue
        location = real(path)
        if location in options:
            fail(
                f"`{option}`: `{path}` is read by this run ({options[location]})",
                "choose another file",
            )
        options[location] = option


def _refuse_mixing(line: CommandLine, writers: Sequence[str]) -> None:
    """Check that at most one option writes to standard output: reports for people, and printed
    outputs, follow one another.
    """
    people = [f"--report {kind}" for kind in TO_STDOUT]
    to_stdout = ["--json"] * line.json + ["--break"] * bool(line.stop_at) * line.json
    to_stdout += [option for option in dict.fromkeys(writers) if option not in people]
    to_stdout += [option for option in writers if option in people][:1]
    if len(to_stdout) > 1:
        refuse_pair(to_stdout[0], to_stdout[1], "both go to standard output")


def _is_path(path: str) -> bool:
    return path not in ("", STANDARD) and "\0" not in path


def paths(line: CommandLine, use: str) -> Iterator[tuple[str, str]]:
    """Yield the options that read (`reads`) or write (`writes`) files, each with its path."""
    for name, row in TABLE.items():
        path_in = getattr(row, use)
        if path_in is None:
            continue
        value = getattr(line, name)
        for text in value if isinstance(value, tuple) else filter(None, [value]):
            option = "the kernel" if name == "artifact" else row.name
            option += f" {text.partition('=')[0].partition('@')[0]}" if name == "report" else ""
            yield option, path_in(text)


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
    for option, path in paths(line, "writes"):
        if MARK not in path and path not in ("", STANDARD):
            text = f"{option} {path}: every rank would write to it"
            raise bad_value(text, f"put {MARK} into the path")
    for option, path in paths(line, "reads"):
        if path == STANDARD and option != "the kernel":
            text = f"{option} -: {line.ranks} ranks cannot all read it"
            raise bad_value(text, f"write files with {MARK}")
