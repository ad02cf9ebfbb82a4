"""Conflicting options: an error, because one of them would be ignored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

import click
from click.core import ParameterSource

from nkic.base.diagnostics import UsageFailed, make

Given = Mapping[str, str]  # the spelling on the command line, by the option's own name


def given() -> Given:
    """Return the options and arguments given to the running command, in the order of --help.

    An option counts even if its value equals the default; an environment variable does not count.
    """
    context = click.get_current_context()
    return {
        str(one.name): _word(one, context.params[str(one.name)])
        for one in context.command.params
        if one.expose_value
        and context.get_parameter_source(str(one.name)) is ParameterSource.COMMANDLINE
    }


def _word(one: click.Parameter, value: Any) -> str:
    if isinstance(one, click.Argument):
        return str(value)
    if value is False and one.secondary_opts:
        return one.secondary_opts[0]
    return next((word for word in one.opts if word.startswith("--")), one.opts[0])


def refuse(line: Given, option: str, others: Iterable[str], why: str) -> None:
    """Raise `UsageFailed` for the first of `others` that is given together with `option`."""
    for name in others:
        if name in line:
            refuse_pair(option, line[name], why)


def refuse_all_but(line: Given, option: str, taken: Iterable[str], does: str) -> None:
    """Raise `UsageFailed` for the first option that `option` does not accept beside it.

    `does`: what `option` does, as in `writes nothing`.
    """
    kept = {*taken}
    refuse(line, option, [name for name in line if name not in kept], f"`{option}` {does}")


def needs(line: Given, names: Iterable[str], needed: str) -> None:
    """Raise `UsageFailed` for the first of `names` that is given: all of them need another
    option.
    """
    for name in names:
        if name in line:
            fail(f"`{line[name]}` needs `{needed}`", f"add `{needed}`, or leave out `{line[name]}`")


def refuse_pair(option: str, other: str, why: str, help: str = "") -> NoReturn:
    """Raise `UsageFailed` for two options that exclude each other."""
    text = f"`{option}` and `{other}` cannot be used together: {why}"
    fail(text, help or f"leave out `{other}`")


def fail(text: str, help: str) -> NoReturn:
    """Raise `UsageFailed`."""
    raise UsageFailed([make("conflicting-options", text, help=help)])
