"""Every mode and subcommand accepts or rejects each option: none is ignored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click
import pytest

from nkic.base.diagnostics import UsageFailed
from nkic.cli.common import Session
from nkic.cli.common.options import Shared, filled, given_options, refuse_by_table, rows
from nkic.cli.common.tool import Tool
from nkic.cli.nki_run import command as nki_run
from nkic.cli.nki_run.options import CommandLine as RunLine
from nkic.cli.nki_run.options import refuse_conflicts as refuse_in_run
from nkic.cli.nkic import command as nkic
from nkic.cli.nkic.carry_out import refuse_conflicts as refuse_in_nkic

MODES = {
    "nki-run": {
        "compare a.json b.json": "fail_if report json",
        "calibrate --print machine": "print json machine",
        "calibrate --print microkernels": "print",
        "calibrate folder": "folder target figures",
        "inspect k.neff": "disasm check json require_signature",
        "inspect k.neff --disasm": "disasm json engine lines require_signature",
        "inspect k.neff --check": "check json require_signature",
    },
    "nkic": {
        "--print targets": "print json no_cache",
        "--print kernels k.py": "print nki json no_cache",
        "k.py --check": "check kernel arg const like nki target grid lnc include module"
        " spill time no_cache jobs junit fix watching bug_report sources",
        "k.py --migrate 0.7": "migrate kernel arg const like nki target grid lnc include module"
        " output in_place verify no_cache",
    },
}
TOOLS = {"nki-run": nki_run, "nkic": nkic}
VALUES = {"nki": "0.6", "target": "trn2", "report": "md=r.md", "print": "machine"}


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
    return [one.opts[0], value]


def refused(tool: str, words: Sequence[str]) -> str:
    """Return the error about the command line as a whole, or nothing."""
    try:
        context = TOOLS[tool].make_context(tool, [*words], obj=Session(tool))
        with context:
            command = context.command
            assert isinstance(command, Tool)
            line, given = filled(command.line, context.params), given_options()
            if tool == "nkic":
                refuse_in_nkic(line, given)
            elif isinstance(line, RunLine):
                refuse_in_run(line, given)
            else:
                refuse_by_table(rows(command.line), given, getattr(line, "print", "") or "")
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
    assert {name for name, said in found.items() if not said} <= {*taken.split()}
    assert [found[name] for name in taken.split() if found.get(name)] == []


def answers(tool: str, mode: str) -> Mapping[str, str]:
    """Return the answer to each parameter beside `mode`, except the parameters of the mode
    itself, and those that need another one.
    """
    found: dict[str, Any] = {}
    here = mode.split()
    command = TOOLS[tool]
    command = command.commands.get(here[0], command)
    table = rows(command.line)
    for one in command.table:
        name = str(one.name)
        is_own = one.expose_value and name not in rows(Shared)
        if is_own and not {*one.opts, *one.secondary_opts} & {*here}:
            found[name] = refused(tool, [*here, *words_of(one)])
    lacking = [name for name in found if table[name].needs and "needs" in found[name]]
    return {name: said for name, said in found.items() if name not in lacking}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("k.neff --rtol 1", "`--rtol` needs `--expected` or `--expect-at`"),
        ("k.neff --outputs-as f32", "`--outputs-as` needs `--outputs`"),
        ("k.neff --bless a.npz --expected e.npz", "`--bless` and `--expected`"),
        ("k.neff --fail-if cycles>+2%", "`--fail-if` needs `--baseline`"),
        ("profile k.neff --json --report json=-", "both go to standard output"),
        ("profile k.neff --report annotate --json", "both go to standard output"),
        ("profile k.neff --report md=a --report html=a", "is also written by --report md"),
        ("k.neff --inputs - --expected -", "standard input can be read once"),
        ("debug k.neff --break 1 --inputs -", "standard input can be read once"),
        ("debug k.neff --break 1 --json", "both go to standard output"),
        ("profile k.neff --report annotate --report timeline", ""),
        ("k.neff -o x=- -o y=-", ""),
        ("k.neff -i x=zeros -i y=@y.npy --inputs a.npz", ""),
    ],
)
def test_options_of_a_run_that_exclude_each_other(words: str, said: str) -> None:
    found = refused("nki-run", words.split())
    assert said in found if said else found == ""
