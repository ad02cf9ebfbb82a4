"""The options that both tools share."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import click

from nkic import __version__
from nkic.base import explain
from nkic.base.levels import Wish
from nkic.base.render import FORMATS
from nkic.cli.common import pages
from nkic.cli.common.help import Tool, adding, option
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


_message = partial(option, "Messages", expose_value=False)
_level = partial(_message, metavar="CODE", multiple=True, callback=_wishes)
_about = partial(option, "Help", expose_value=False, is_eager=True)
_OPTIONS = (
    _message(
        "--message-format",
        "format",
        type=click.Choice(FORMATS),
        default="human",
        show_default=True,
        callback=_store,
        common=True,
        help="Format of the messages on standard error.",
    ),
    _message(
        "--message-file",
        metavar="PATH",
        callback=_store,
        help="Also write the messages to PATH: SARIF if it ends in .sarif, else JSON lines.",
    ),
    _level(
        "-W",
        "warn",
        help="Warn about CODE, even if it is off by default. -Werror: treat every warning as an "
        "error; -Werror=CODE: only this one. CODE is a number, a name or a family (05).",
    ),
    _level("-A", "allow", help="Suppress the warning CODE."),
    _level("-D", "deny", help="Treat the warning CODE as an error."),
    _message(
        "--color",
        type=click.Choice(COLOUR_CHOICES),
        default="auto",
        show_default=True,
        callback=_store,
        help="Colour; auto respects NO_COLOR, FORCE_COLOR and whether the output is a terminal.",
    ),
    _message("-q", "--quiet", count=True, callback=_adjust_verbosity, help="Print less."),
    _message("-v", "--verbose", count=True, callback=_adjust_verbosity, help="Print more."),
    _message(
        "--crash-dir",
        metavar="DIR",
        envvar="NKIC_CRASH_DIR",
        callback=_store,
        help="Folder for the report of an internal error. [env: NKIC_CRASH_DIR]",
    ),
    option(
        "Limits",
        "--limit",
        metavar="NAME=VALUE",
        multiple=True,
        callback=_limits,
        expose_value=False,
        help="Limit the command's use of the machine (memory, cpu, core, files, file-size, "
        "processes; `none` for no limit), and in nkic the evaluation of a kernel (steps, length, "
        "bits, width, depth).",
    ),
    _about(
        "--explain",
        metavar="CODE",
        callback=_explain,
        common=True,
        help="Explain a message's code, such as NKI0501; `all` prints every page.",
    ),
    _about("--version", is_flag=True, callback=_version, help="Print name and version."),
    _about("-h", is_flag=True, callback=_help, help="Show the short help."),
    _about("--help", is_flag=True, callback=_help, help="Show this help."),
)

# A decorator that adds them. Their values go to the `Session`, not to the decorated function.
shared_options = adding(_OPTIONS)
