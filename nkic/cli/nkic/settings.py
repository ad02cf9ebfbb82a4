"""The table of `--print config`: every setting, its value and its origin."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import click
from click.core import ParameterSource

from nkic.base.source import SourceFile
from nkic.cli.common import Session
from nkic.driver.request import COMMAND_LINE, DEFAULT, Setting, settings
from nkic.specialise.request import RequestOptions

# Options that are read from the request instead, and options that are not settings.
_REQUEST = frozenset({"kernel", "arg", "const", "nki", "target", "grid", "lnc"})
_ACTIONS = frozenset({"print", "explain", "version", "h", "help"})
_JOINED = frozenset({"warn", "allow", "deny", "quiet", "verbose"})  # have rows of their own


def rows(
    request_options: RequestOptions, source: SourceFile | None, session: Session
) -> Iterator[Setting]:
    """Yield the header, the kernel's settings, then every option."""
    yield "setting", "value", "from"
    yield from settings(source, request_options, os.environ)
    context = click.get_current_context()
    for option in context.command.get_params(context):
        name = str(option.name)
        if isinstance(option, click.Option) and name not in _REQUEST | _ACTIONS | _JOINED:
            yield option.opts[-1].lstrip("-"), _shown(context.params[name]), _origin(context, name)
    verbosity = session.verbosity
    yield "verbosity", str(verbosity), COMMAND_LINE if verbosity else DEFAULT
    yield _levels(session)


def _levels(session: Session) -> Setting:
    words = [f"{wish.value} {name}" for name, wish in session.levels.wishes.items()]
    words += ["-Werror"] if session.levels.all_errors else []
    return "warnings", " ".join(words) or "as they are", COMMAND_LINE if words else DEFAULT


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return " ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


def _origin(context: click.Context, name: str) -> str:
    """Return the origin of an option's value."""
    is_given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    return COMMAND_LINE if is_given else DEFAULT
