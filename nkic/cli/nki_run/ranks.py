"""One command line for several ranks: `{rank}` in a path is the rank's number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from nkic.base.diagnostics import bad_value
from nkic.base.files import STANDARD
from nkic.cli.nki_run.conflicts import TABLE, paths
from nkic.cli.nki_run.options import CommandLine

MARK = "{rank}"
# The files that all ranks share.
_SHARED = ("artifact", "source", "machine")
_PATHS = [n for n, row in TABLE.items() if (row.reads or row.writes) and n not in _SHARED]


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
