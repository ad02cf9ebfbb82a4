"""Every mode of a command accepts or rejects each option: none is ignored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import click
import pytest

from nkic.base.diagnostics import UsageFailed
from nkic.cli.common import Session
from nkic.cli.common.conflicts import given_options
from nkic.cli.common.help import Tool
from nkic.cli.nki_run import command as nki_run
from nkic.cli.nki_run import conflicts as of_runner
from nkic.cli.nki_run import options as runner_options
from nkic.cli.nkic import command as nkic
from nkic.cli.nkic import conflicts as of_compiler
from nkic.cli.nkic import options as compiler_options

MODES = {
    "nki-run": {
        "--diff a.json b.json": "diff fail_if report json",
        "--print machine": "print json machine",
        "--print microkernels": "print",
        "--calibrate folder": "calibrate target",
        "--info k.neff": "info json",
        "--disasm k.neff": "disasm json engine lines",
        "--verify k.neff": "verify json",
    },
    "nkic": {
        "--print targets": "print json max_errors time_limit no_cache",
        "--list-kernels k.py": "list_kernels nki json max_errors time_limit no_cache",
        "k.py --check": "check kernel arg const like nki target grid lnc include module"
        " spill time_passes max_errors time_limit no_cache",
        "k.py --migrate 0.7": "migrate kernel arg const like nki target grid lnc include module"
        " output in_place verify max_errors time_limit no_cache",
    },
}
TOOLS: dict[str, tuple[Tool, ModuleType, ModuleType]] = {
    "nki-run": (nki_run, of_runner, runner_options),
    "nkic": (nkic, of_compiler, compiler_options),
}
VALUES = {"lines": "1:2", "window": "0:1", "max_memory": "1G", "nki": "0.6", "target": "trn2"}
VALUES |= {"report": "json=r.json", "trace": "t.json", "timeout": "1", "time_limit": "1"}


def words_of(one: click.Parameter) -> list[str]:
    """Return the parameter as words of a command line, with a value other than its default."""
    if isinstance(one, click.Argument):
        return ["k.py"]
    assert isinstance(one, click.Option)
    if one.is_flag:
        return [(one.secondary_opts or one.opts)[0]]
    kind = one.type
    value = VALUES.get(str(one.name)) or (
        kind.choices[-1] if isinstance(kind, click.Choice) else "1"
    )
    return [one.opts[0], *[value] * one.nargs]


def refused(tool: str, words: Sequence[str]) -> str:
    """Return the error about the command line as a whole, or nothing."""
    command, conflicts, options = TOOLS[tool]
    try:
        with command.make_context(tool, [*words], obj=Session(tool)) as context:
            line = options.CommandLine(**context.params)
            conflicts.refuse_conflicts(line, given_options())
    except UsageFailed as failed:
        return failed.diagnostics[0].message
    except click.UsageError as error:  # a second file
        return error.message
    return ""


CASES = [(tool, mode, taken) for tool, modes in MODES.items() for mode, taken in modes.items()]


@pytest.mark.parametrize(("tool", "mode", "taken"), CASES)
def test_what_an_option_does_not_take_is_refused(tool: str, mode: str, taken: str) -> None:
    assert refused(tool, mode.split()) == ""
    found = answers(tool, mode)
    assert len(found) > 25
    assert {name for name, said in found.items() if not said} <= {*taken.split()}
    assert [found[name] for name in taken.split() if found.get(name)] == []


def answers(tool: str, mode: str) -> Mapping[str, str]:
    """Return the answer to each parameter beside `mode`, except the parameters of the mode
    itself.
    """
    found: dict[str, Any] = {}
    for one in TOOLS[tool][0].params:
        here = mode.split()
        if one.expose_value and not {*one.opts, *one.secondary_opts} & {*here}:
            found[str(one.name)] = refused(tool, [*here, *words_of(one)])
    return found
