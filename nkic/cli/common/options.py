"""The options that both tools share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import click

from nkic import __version__
from nkic.base import explain
from nkic.base.levels import Wish
from nkic.base.render import FORMATS
from nkic.cli.common import pages
from nkic.cli.common.help import Function, Tool, adding, option
from nkic.cli.common.session import Session
from nkic.cli.common.streams import COLOUR_CHOICES


def _store(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    """Store the option's value in the session, under the option's name."""
    setattr(ctx.ensure_object(Session), str(param.name), value)


def _adjust_verbosity(ctx: click.Context, param: click.Parameter, value: int) -> None:
    session = ctx.ensure_object(Session)
    session.verbosity += value if param.name == "verbose" else -value


def _wishes(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> None:
    """Handle -W, -A and -D; `-Werror` and `-Werror=CODE` are values of -W."""
    session, wish = ctx.ensure_object(Session), Wish(param.opts[0])
    for value in values:
        name, equals, code = value.partition("=")
        if wish is not Wish.WARN or name != "error":
            session.levels = session.levels.adding(wish, value)
        elif equals:
            session.levels = session.levels.adding(Wish.DENY, code)
        else:
            session.levels = replace(session.levels, all_errors=True)


def _limits(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> None:
    session = ctx.ensure_object(Session)
    session.limit = values
    if values:
        from nkic.limits.table import read  # rarely wanted

        session.limits = read(session.tool, values)


def _print_and_leave(ctx: click.Context, text: str) -> None:
    click.echo(text, color=True)  # colour has already been decided
    ctx.exit()


def _version(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    if wanted:
        _print_and_leave(ctx, f"{ctx.info_name} {__version__}")


def _help(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    """Print the help: all of it for --help, the common options for -h."""
    if wanted and param.name == "h" and isinstance(ctx.command, Tool):
        _print_and_leave(ctx, ctx.command.brief_help(ctx).rstrip())
    elif wanted:
        _print_and_leave(ctx, ctx.get_help())


def _explain(ctx: click.Context, param: click.Parameter, wanted: str | None) -> None:
    if wanted is not None:
        colour = ctx.ensure_object(Session).color
        _print_and_leave(ctx, pages.markdown(explain.page(wanted), colour).rstrip())


def _option(*names: str, group: str = "General", **settings: Any) -> Callable[[Function], Function]:
    return option(group, *names, expose_value=False, **settings)


_WISHES = (
    (
        "-W",
        "warn",
        "Warn about CODE, even if it is off by default. -Werror: treat every warning as an "
        "error; -Werror=CODE: only this one. CODE is a number, a name or a family (05).",
    ),
    ("-A", "allow", "Suppress the warning CODE."),
    ("-D", "deny", "Treat the warning CODE as an error."),
)
_OPTIONS = (
    _option(
        "--message-format",
        "format",
        type=click.Choice(FORMATS),
        default="human",
        show_default=True,
        callback=_store,
        group="Messages",
        common=True,
        help="Format of the messages on standard error.",
    ),
    _option(
        "--message-file",
        metavar="PATH",
        callback=_store,
        group="Messages",
        help="Also write the messages to PATH: SARIF if it ends in .sarif, else JSON lines.",
    ),
    *(
        _option(
            name,
            dest,
            metavar="CODE",
            multiple=True,
            callback=_wishes,
            group="Messages",
            help=meaning,
        )
        for name, dest, meaning in _WISHES
    ),
    _option(
        "--color",
        type=click.Choice(COLOUR_CHOICES),
        default="auto",
        show_default=True,
        callback=_store,
        group="Messages",
        help="Colour; auto respects NO_COLOR, FORCE_COLOR and whether the output is a terminal.",
    ),
    _option(
        "-q",
        "--quiet",
        count=True,
        callback=_adjust_verbosity,
        group="Messages",
        help="Print less.",
    ),
    _option(
        "-v",
        "--verbose",
        count=True,
        callback=_adjust_verbosity,
        group="Messages",
        help="Print more.",
    ),
    _option(
        "--crash-dir",
        metavar="DIR",
        envvar="NKIC_CRASH_DIR",
        callback=_store,
        group="Messages",
        help="Folder for the report of an internal error. [env: NKIC_CRASH_DIR]",
    ),
    _option(
        "--limit",
        metavar="NAME=VALUE",
        multiple=True,
        callback=_limits,
        group="Limits",
        help="Limit the command's use of the machine (memory, cpu, core, files, file-size, "
        "processes; `none` for no limit), and in nkic the evaluation of a kernel (steps, length, "
        "bits, width, depth). docs/security.md lists the defaults.",
    ),
    _option(
        "--explain",
        metavar="CODE",
        is_eager=True,
        callback=_explain,
        group="Help",
        common=True,
        help="Explain a message's code, such as NKI0501; `all` prints every page.",
    ),
    _option(
        "--version",
        is_flag=True,
        is_eager=True,
        callback=_version,
        group="Help",
        help="Print name and version.",
    ),
    _option(
        "-h",
        is_flag=True,
        is_eager=True,
        callback=_help,
        group="Help",
        help="Show the short help.",
    ),
    _option(
        "--help",
        is_flag=True,
        is_eager=True,
        callback=_help,
        group="Help",
        help="Show this help.",
    ),
)

# A decorator that adds them. Their values go to the `Session`, not to the decorated function.
shared_options = adding(_OPTIONS)
