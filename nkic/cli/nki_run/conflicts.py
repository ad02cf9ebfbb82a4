"""Combinations of options that nki-run rejects, beyond what the table says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nkic.base.files import STANDARD, real
from nkic.cli.common.conflicts import Given, fail, refuse_by_table, refuse_pair
from nkic.cli.common.table import rows
from nkic.cli.nki_run.options import TO_STDOUT, CommandLine

TABLE = rows(CommandLine)


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
