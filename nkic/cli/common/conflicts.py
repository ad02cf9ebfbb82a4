"""Conflicting options: an error, because one of them would be ignored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

import click
from click.core import ParameterSource

from nkic.base.diagnostics import UsageFailed, bad_value, make
from nkic.cli.common.options import Shared
from nkic.cli.common.table import Row, rows

Given = Mapping[str, str]  # the spelling on the command line, by field


def given_options() -> Given:
    """Return the options and arguments given to the running command, in the order of its table.

    An option counts even if its value equals the default; shared options do not count. Raises
    `UsageFailed` for an empty value, such as that of an unset variable of the shell.
    """
    context = click.get_current_context()
    shared = rows(Shared)
    given = [
        parameter
        for parameter in context.command.get_params(context)
        if parameter.expose_value
        and parameter.name not in shared
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


def refuse_by_table(table: Mapping[str, Row], given: Given, mode: str = "") -> None:
    """Raise `UsageFailed` for the first option that the mode does not accept, or that lacks what it
    needs. `mode` is the name in `Row.modes`, by default the field that is given.
    """
    field = next((name for name, row in table.items() if row.does and name in given), None)
    mode = mode or field or ""
    for name, spelling in given.items():
        if field is not None and name != field and mode not in table[name].modes.split():
            refuse_pair(given[field], spelling, f"`{given[field]}` {table[field].does}")
    for name, spelling in given.items():
        required = table[name].needs
        if required and not any(other in given for other in required):
            needed = " or ".join(f"`{table[other].name}`" for other in required)
            fail(f"`{spelling}` needs {needed}", f"add {needed}, or leave out `{spelling}`")


def refuse(given: Given, option: str, others: Iterable[str], why: str) -> None:
    """Raise `UsageFailed` for the first of `others` that is given together with `option`."""
    for name in others:
        if name in given:
            refuse_pair(option, given[name], why)


def refuse_pair(option: str, other: str, why: str, help: str = "") -> NoReturn:
    """Raise `UsageFailed` for two options that exclude each other."""
    text = f"`{option}` and `{other}` cannot be used together: {why}"
    fail(text, help or f"leave out `{other}`")


def fail(text: str, help: str) -> NoReturn:
    """Raise `UsageFailed`."""
    raise UsageFailed([make("conflicting-options", text, help=help)])
