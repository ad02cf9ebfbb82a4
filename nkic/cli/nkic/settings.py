"""The table of `--print config`: every setting, its value, and who says so."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import click
from click.core import ParameterSource

from nkic.base import profiles
from nkic.base.source import SourceFile
from nkic.cli.common import Session
from nkic.cli.nkic.options import CommandLine
from nkic.request import TARGET_VARIABLE, Said, given, request_for
from nkic.specialise.inline import read_block
from nkic.specialise.request import Given, Request

COMMAND_LINE, DEFAULT = "command line", "default"
Row = tuple[str, str, str]
# What the request knows better than the option, and options that are not settings.
_REQUEST = frozenset({"kernel", "arg", "const", "nki", "target", "grid", "lnc"})
_ACTIONS = frozenset({"print", "list_kernels", "explain", "version", "h", "help"})
_JOINED = frozenset({"warn", "allow", "deny", "quiet", "verbose"})  # rows of their own


def rows(
    line: CommandLine, said: Said, source: SourceFile | None, session: Session
) -> Iterator[Row]:
    """The header, what the kernel is compiled for, then every option."""
    yield "setting", "value", "from"
    yield from _request(said, source)
    context = click.get_current_context()
    for option in context.command.params:
        name = str(option.name)
        if isinstance(option, click.Option) and name not in _REQUEST | _ACTIONS | _JOINED:
            value = getattr(line if hasattr(line, name) else session, name, None)
            yield option.opts[-1].lstrip("-"), _shown(value), _origin(context, option)
    loud = session.verbosity
    yield "verbosity", str(loud), COMMAND_LINE if loud else DEFAULT
    yield _levels(session)


def _request(said: Said, source: SourceFile | None) -> Iterator[Row]:
    empty = SourceFile("<none>", "")
    command, request = given(said), request_for(source or empty, said, os.environ)
    block = read_block(source) if source is not None else Given()
    where = f"inline block of {source.path}" if source is not None else ""
    values = {
        "kernel": request.kernel or "the file's only one",
        "target": request.target.name,
        "profile": profiles.LABELS[request.profile],
        "grid": "x".join(map(str, request.grid)) or "none",
        "lnc": str(request.lnc),
    }
    for name, value in values.items():
        origin = COMMAND_LINE if getattr(command, name) is not None else DEFAULT
        if origin == DEFAULT and getattr(block, name) is not None:
            origin = where
        elif origin == DEFAULT and name == "target" and os.environ.get(TARGET_VARIABLE):
            origin = TARGET_VARIABLE
        yield "nki" if name == "profile" else name, value, origin
    yield from _arguments(request, command, where)


def _arguments(request: Request, command: Given, where: str) -> Iterator[Row]:
    for name, kind in {**request.like, **request.args}.items():
        yield f"argument {name}", str(kind), kind.origin
    for name, value in request.consts.items():
        origin = COMMAND_LINE if name in command.consts else where
        yield f"argument {name}", repr(value), origin


def _levels(session: Session) -> Row:
    words = [f"{wish.value} {name}" for name, wish in session.levels.wishes.items()]
    words += ["-Werror"] if session.levels.all_errors else []
    return "warnings", " ".join(words) or "as they are", COMMAND_LINE if words else DEFAULT


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return " ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)


def _origin(context: click.Context, option: click.Option) -> str:
    """Who gave an option its value."""
    found = context.get_parameter_source(str(option.name))
    if found is ParameterSource.COMMANDLINE:
        return COMMAND_LINE
    return str(option.envvar) if found is ParameterSource.ENVIRONMENT else DEFAULT
