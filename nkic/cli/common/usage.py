"""Click's errors about a command line, as nkic's diagnostics."""

from __future__ import annotations

import re

import click

from nkic.base.diagnostics import Diagnostic, make
from nkic.base.suggest import Guess, did_you_mean


def diagnostic(error: click.ClickException, tool: str) -> Diagnostic:
    """Return Click's error as a diagnostic, with the nearest option if one was misspelt."""
    advice = f"`{tool} --help` shows every option"
    if isinstance(error, click.NoSuchOption):
        near = did_you_mean(error.option_name, _option_names(error.ctx))
        if not (isinstance(near, Guess) and near.sure):
            near = _as_value(error.option_name, error.ctx) or near
        return make("unknown-option", f"no such option: `{error.option_name}`", help=near or advice)
    if isinstance(error, click.MissingParameter):
        return make("missing-argument", f"missing {_name(error)}", help=advice)
    if isinstance(error, click.BadParameter):
        return make("bad-value", f"{_name(error)}: {_sentence(error.message)}", help=advice)
    return make("bad-usage", _sentence(error.format_message().removeprefix("Got ")), help=advice)


def _option_names(ctx: click.Context | None) -> list[str]:
    params = ctx.command.get_params(ctx) if ctx else []
    return [name for param in params for name in (*param.opts, *param.secondary_opts)]


# Options that take one of several words: `--html` may mean `--report html=FILE`.
_OF_WORDS = {"KIND=FILE": "{}=FILE", "NAME=VALUE": "{}=VALUE", "WHAT": "{}"}


def _as_value(word: str, ctx: click.Context | None) -> str:
    """Return the option whose help names `word` as one of its values, as advice, or ""."""
    value = word.lstrip("-").partition("=")[0]
    for param in ctx.command.get_params(ctx) if ctx else []:
        form = _OF_WORDS.get(str(getattr(param, "metavar", "")))
        described = str(getattr(param, "help", ""))
        if form and re.search(rf"(?<![\w=-]){re.escape(value)}(?=[,;.=)])", described):
            return f"did you mean `{param.opts[0]} {form.format(value)}`?"
    return ""


def _name(error: click.BadParameter) -> str:
    """Return `--color`, or the argument's name as in the usage line."""
    hint = error.param_hint or (error.param.get_error_hint(error.ctx) if error.param else "value")
    return (hint if isinstance(hint, str) else " / ".join(hint)).replace("'", "`")


def _sentence(text: str) -> str:
    """Return Click's sentence in the style of nkic's messages: no capital, no full stop."""
    return text[:1].lower() + text[1:].rstrip().removesuffix(".")
