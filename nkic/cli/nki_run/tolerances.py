"""The comparison options (--compare, --rtol, …): settings for a kernel's outputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from nkic.base.diagnostics import UsageFailed, bad_value, make
from nkic.base.suggest import suggestion
from nkic.cli.nki_run.options import CommandLine
from nkic.simulate.comparison.tolerance import EVERY, MODES, ToleranceSettings
from nkic.simulate.io.signature import Signature

# The fields of a rule that have an option, with the range of their values.
_NUMBERS = {
    "rtol": (0.0, 1e300),
    "atol": (0.0, 1e300),
    "max_ulp": (0.0, 2.0**32),
    "min_cosine": (-1.0, 1.0),
    "min_pass_rate": (0.0, 1.0),
}


def settings(line: CommandLine) -> ToleranceSettings:
    """Return the settings of the command line. Raises `UsageFailed`."""
    by_key: dict[str, dict[str, Any]] = {"mode": _parsed("--compare", line.compare, _mode)}
    for key in _NUMBERS:
        option = _option(key)
        by_key[key] = _parsed(option, getattr(line, key), partial(_number, key))
    return ToleranceSettings(by_key, line.equal_nan)


def _option(key: str) -> str:
    return "--compare" if key == "mode" else f"--{key.replace('_', '-')}"


def _parsed(option: str, values: Sequence[str], read: Callable[[str, str], Any]) -> dict[str, Any]:
    """Parse `[NAME=]VALUE`, each name at most once."""
    parsed: dict[str, Any] = {}
    for text in values:
        name, equals, value = text.rpartition("=")
        if equals and not name:
            raise bad_value(f"{option} {text}: an output's name is missing before `=`")
        if name in parsed:
            about = f"for `{name}` " if name else ""
            raise bad_value(f"{option} is given twice {about}".rstrip())
        parsed[name or EVERY] = read(option, value)
    return parsed


def _mode(option: str, name: str) -> str:
    if name not in MODES:
        raise bad_value(f"{option}: there is no mode `{name}`", suggestion(name, MODES))
    return name


def _number(key: str, option: str, text: str) -> float:
    low, high = _NUMBERS[key]
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        limits = f"from {low:g} to {high:g}" if high < 1e300 else f"of at least {low:g}"
        raise bad_value(f"{option}: `{text}` is not a number {limits}")
    return value


def refuse_ignored(settings: ToleranceSettings, signature: Signature) -> None:
    """Raise `UsageFailed` for a setting that applies to no output."""
    modes = {p.name: settings.rule(p.name, p.dtype).mode for p in signature.outputs}
    for key, values in settings.by_name.items():
        for name in values:
            if name != EVERY and name not in modes:
                text = f"{_option(key)}: there is no output `{name}`"
                raise bad_value(text, suggestion(name, modes, "there are"))
            affected = [n for n, mode in modes.items() if key == "mode" or key in MODES[mode]]
            if not affected or (name != EVERY and name not in affected):
                mode = modes.get(name, next(iter(modes.values()), "close"))
                text = f"`{_option(key)}` does not apply to `--compare {mode}`"
                raise UsageFailed([make("conflicting-options", text, help=_used_options(mode))])


def _used_options(mode: str) -> str:
    options = [_option(key) for key in MODES[mode]]
    return f"{mode} uses only {', '.join(options)}" if options else f"{mode} uses no other option"
