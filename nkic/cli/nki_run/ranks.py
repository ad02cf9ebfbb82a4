"""One command line for several ranks: `{rank}` in a path is the rank's number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from nkic.base.diagnostics import bad_value
from nkic.base.files import STANDARD
from nkic.cli.nki_run.options import CommandLine

MARK = "{rank}"
# Options that hold paths, once or several times; the first ones name files that are written.
_WRITTEN = (
    *("outputs", "bless", "summary_json", "save_baseline", "counters", "dump_all"),
    *("output", "report", "trace", "dump_tensor"),
)
_PATHS = (*_WRITTEN, "inputs", "expected", "baseline", "input", "expect_at")


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
    def substituted(value: str | tuple[str, ...] | None) -> Any:
        if isinstance(value, tuple):
            return tuple(map(substituted, value))
        return value.replace(MARK, str(rank)) if value is not None else None

    return replace(line, **{name: substituted(getattr(line, name)) for name in _PATHS})


def _refuse_marks(line: CommandLine) -> None:
    if any(MARK in text for name in _PATHS for text in _texts(line, name)):
        raise bad_value(f"`{MARK}` in a path needs more than one rank", "add --ranks N")


def _texts(line: CommandLine, name: str) -> Iterator[str]:
    """Yield the values of an option."""
    value = getattr(line, name)
    yield from value if isinstance(value, tuple) else filter(None, [value])


def _refuse_shared(line: CommandLine) -> None:
    for name in _WRITTEN:
        option = "-O" if name == "output" else f"--{name.replace('_', '-')}"
        for path in _texts(line, name):
            if MARK not in path and not path.endswith("=-") and path != STANDARD:
                text = f"{option} {path}: every rank would write to it"
                raise bad_value(text, f"put {MARK} into the path")
    for option, source in (("--inputs", line.inputs), ("--expected", line.expected)):
        if source == STANDARD:
            text = f"{option} -: {line.ranks} ranks cannot all read it"
            raise bad_value(text, f"write files with {MARK}")
