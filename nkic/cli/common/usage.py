"""Click's errors about a command line, as nkic's diagnostics."""

from __future__ import annotations

import re

import click

from nkic.base.diagnostics import Diagnostic, make
from nkic.base.suggest import did_you_mean
from nkic.cli.common.help import Tool
from nkic.cli.common.old import spelt
from nkic.cli.common.table import Option

_ARRAYS = re.compile(r"unexpected extra argument \((\S+\.npz)\)")


def diagnostic(error: click.ClickException, tool: str) -> Diagnostic:
    """Return Click's error as a diagnostic, with the nearest option if one was misspelt."""
    context = getattr(error, "ctx", None)
    advice = f"`{context.command_path if context else tool} --help` shows every option"
    if isinstance(error, click.NoSuchOption):
        near = context and isinstance(context.command, Tool) and _near(error, context.command, tool)
        text = f"no such option: `{error.option_name}`"
        return make("unknown-option", text, help=near or advice)
    if isinstance(error, click.MissingParameter):
        return make("missing-argument", f"missing {_name(error)}", help=advice)
    if isinstance(error, click.BadParameter):
        return make("bad-value", f"{_name(error)}: {_sentence(error.message)}", help=advice)
    text = _sentence(error.format_message().removeprefix("Got "))
    arrays = _ARRAYS.fullmatch(text)
    if arrays and context and "--inputs" in _names(context.command):
        advice = f"arrays are given with `--inputs {arrays[1]}`"
    return make("bad-usage", text, help=advice)


def _near(error: click.NoSuchOption, command: Tool, tool: str) -> str:
    """Return where an unknown option belongs: to a subcommand, to an option that takes it as a
    value, or to the nearest name.
    """
    name, word = error.option_name, error.option_name.lstrip("-")
    for other, subcommand in command.suite.commands.items():
        if name in _names(subcommand):
            return f"it is an option of `{tool} {other}`"
    if (now := command.suite.old.get(name)) is not None:
        return f"it is now spelt `{spelt(tool, now)}`"
    for param in command.table:
        row = param.row if isinstance(param, Option) else None
        if row is not None and word in row.listed(tool):
            value = str(row.metavar).partition("=")[2].strip("]…,")
            return f"did you mean `{row.name} {word}{'=' * bool(value)}{value}`?"
    return did_you_mean(name, _names(command))


def _names(command: Tool) -> list[str]:
    return [name for param in command.table for name in (*param.opts, *param.secondary_opts)]


def _name(error: click.BadParameter) -> str:
    """Return `--color`, or the argument's name as in the usage line."""
    hint = error.param_hint or (error.param.get_error_hint(error.ctx) if error.param else "value")
    return (hint if isinstance(hint, str) else " / ".join(hint)).replace("'", "`")


def _sentence(text: str) -> str:
    """Return Click's sentence in the style of nkic's messages: no capital, no full stop."""
    return text[:1].lower() + text[1:].rstrip().removesuffix(".")
