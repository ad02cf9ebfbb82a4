"""The comparison options (--compare, --rtol, --atol): settings for a kernel's outputs."""

from __future__ import annotations

from collections.abc import Iterator
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
    "max_l2": (0.0, 1e300),
    "min_pass_rate": (0.0, 1.0),
}
_RULES = {
    "max-ulp": "max_ulp",
    "min-cosine": "min_cosine",
    "max-l2": "max_l2",
    "pass-rate": "min_pass_rate",
}
_EQUAL_NAN = "equal-nan"


def settings(line: CommandLine) -> ToleranceSettings:
    """Return the settings of the command line. Raises `UsageFailed`."""
    by_key: dict[str, dict[str, Any]] = {}
    equal_nan = False
    for name, rule in _rules(line):
        key, value = _parsed(rule)
        if key == _EQUAL_NAN:
            if name != EVERY:
                raise bad_value(
                    f"--compare {name}={rule}: it is for all outputs", "leave out the name"
                )
            equal_nan = True
            continue
        if name in by_key.setdefault(key, {}):
            about = f" for `{name}`" if name else ""
            raise bad_value(f"{_option(key)} is given twice{about}")
        by_key[key][name] = value
    return ToleranceSettings(by_key, equal_nan)


def _rules(line: CommandLine) -> Iterator[tuple[str, str]]:
    """Yield each rule with the name of its output: `ulp`, `max-ulp:4`, `rtol:1e-3`."""
    for option, values, prefix in (
        *(("--compare", line.compare, ""), ("--rtol", line.rtol, "rtol:")),
        ("--atol", line.atol, "atol:"),
    ):
        for text in values:
            name, equals, rules = text.rpartition("=")
            if equals and not name:
                raise bad_value(f"{option} {text}: an output's name is missing before `=`")
            yield from ((name or EVERY, f"{prefix}{rule}") for rule in rules.split(","))


def _parsed(rule: str) -> tuple[str, Any]:
    """Return the field of a rule, and its value. Raises `UsageFailed`."""
    word, colon, number = rule.partition(":")
    key = _RULES.get(word, word)
    if colon and key in _NUMBERS:
        return key, _number(key, number)
    if word in MODES and not colon:
        return "mode", word
    if word != _EQUAL_NAN:
        names = (*MODES, *(f"{name}:" for name in _RULES), _EQUAL_NAN)
        raise bad_value(f"--compare: there is no rule `{rule}`", suggestion(rule, names))
    return _EQUAL_NAN, True


def _option(key: str) -> str:
    rule = next((name for name, field in _RULES.items() if field == key), None)
    return f"--compare {rule}" if rule else "--compare" if key == "mode" else f"--{key}"


def _number(key: str, text: str) -> float:
    low, high = _NUMBERS[key]
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        limits = f"from {low:g} to {high:g}" if high < 1e300 else f"of at least {low:g}"
        raise bad_value(f"{_option(key)}: `{text}` is not a number {limits}")
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
