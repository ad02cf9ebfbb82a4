"""Click's errors about a command line, as nkic's diagnostics."""

from __future__ import annotations

import click

from nkic.base.diagnostics import Diagnostic, make
from nkic.base.suggest import did_you_mean


def diagnostic(error: click.ClickException, tool: str) -> Diagnostic:
    """Return Click's error as a diagnostic, with the nearest option if one was misspelt."""
    advice = f"`{tool} --help` shows every option"
    if isinstance(error, click.NoSuchOption):
        near = did_you_mean(error.option_name, _option_names(error.ctx))
        return make("unknown-option", f"no such option: `{error.option_name}`", help=near or advice)
    if isinstance(error, click.MissingParameter):
        return make("missing-argument", f"missing {_name(error)}", help=advice)
    if isinstance(error, click.BadParameter):
        return make("bad-value", f"{_name(error)}: {_sentence(error.message)}", help=advice)
    return make("bad-usage", _sentence(error.format_message().removeprefix("Got ")), help=advice)


def _option_names(ctx: click.Context | None) -> list[str]:
    params = ctx.command.get_params(ctx) if ctx else []
    return [name for param in params for name in (*param.opts, *param.secondary_opts)]


def _name(error: click.BadParameter) -> str:
    """Return `--color`, or the argument's name as in the usage line."""
    hint = error.param_hint or (error.param.get_error_hint(error.ctx) if error.param else "value")
    return (hint if isinstance(hint, str) else " / ".join(hint)).replace("'", "`")


def _sentence(text: str) -> str:
    """Return Click's sentence in the style of nkic's messages: no capital, no full stop."""
    return text[:1].lower() + text[1:].rstrip().removesuffix(".")
