"""Conflicting options: an error, because one of them would be ignored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

import click
from click.core import ParameterSource

from nkic.base.diagnostics import UsageFailed, bad_value, make

Given = Mapping[str, str]  # the spelling on the command line, by the option's own name


def given_options() -> Given:
    """Return the options and arguments given to the running command, in the order of --help.

    An option counts even if its value equals the default; an environment variable does not count.
    Raises `UsageFailed` for an empty value, such as that of an unset variable of the shell.
    """
    context = click.get_current_context()
    given = [
        parameter
        for parameter in context.command.params
        if parameter.expose_value
        and context.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE
    ]
    for parameter in given:
        _refuse_empty(parameter, context.params[str(parameter.name)])
    return {
        str(parameter.name): _spelling(parameter, context.params[str(parameter.name)])
        for parameter in given
    }


def _refuse_empty(parameter: click.Parameter, value: Any) -> None:
    if value == "" or (isinstance(value, tuple) and "" in value):
        metavar = str(parameter.metavar).strip("[]")
        name = metavar if isinstance(parameter, click.Argument) else _spelling(parameter, value)
        raise bad_value(f"{name}: the value is empty", f"give {metavar}, or leave it out")


def _spelling(parameter: click.Parameter, value: Any) -> str:
    if isinstance(parameter, click.Argument):
        return str(value)
    if value is False and parameter.secondary_opts:
        return parameter.secondary_opts[0]
    return next((name for name in parameter.opts if name.startswith("--")), parameter.opts[0])


def refuse(given: Given, option: str, others: Iterable[str], why: str) -> None:
    """Raise `UsageFailed` for the first of `others` that is given together with `option`."""
    for name in others:
        if name in given:
            refuse_pair(option, given[name], why)


def refuse_all_but(given: Given, option: str, accepted: Iterable[str], does: str) -> None:
    """Raise `UsageFailed` for the first option that `option` does not accept beside it.

    `does`: what `option` does, as in `writes nothing`.
    """
    allowed = {*accepted}
    refuse(given, option, [name for name in given if name not in allowed], f"`{option}` {does}")


def needs(given: Given, names: Iterable[str], required: str) -> None:
    """Raise `UsageFailed` for the first of `names` that is given: all of them need another
    option.
    """
    for name in names:
        if name in given:
            fail(
                f"`{given[name]}` needs `{required}`",
                f"add `{required}`, or leave out `{given[name]}`",
            )


def refuse_pair(option: str, other: str, why: str, help: str = "") -> NoReturn:
    """Raise `UsageFailed` for two options that exclude each other."""
    text = f"`{option}` and `{other}` cannot be used together: {why}"
    fail(text, help or f"leave out `{other}`")


def fail(text: str, help: str) -> NoReturn:
    """Raise `UsageFailed`."""
    raise UsageFailed([make("conflicting-options", text, help=help)])
