"""Limits on the figures of a run: `cycles>+2%, sbuf_peak>24MiB`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from nkic.base.diagnostics import Diagnostic, UsageFailed, bad_value, make
from nkic.base.suggest import suggestion
from nkic.base.text import clean
from nkic.report.compare.profiles import FIGURES

_RULE = re.compile(r"([a-z_]+)\s*>\s*(\+?)\s*(\d{1,18}(?:\.\d{1,9})?)\s*(%|[KMGT](?:iB|B)?|B|)")
_UNITS = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class Rule(NamedTuple):
    """An upper limit on `figure`: absolute, or above the baseline; in percent of it if
    `percent`.
    """

    figure: str
    limit: float
    above: bool
    percent: bool
    text: str

    def maximum(self, baseline: Mapping[str, float] | None) -> float:
        """Return the greatest allowed value."""
        if not self.above or baseline is None:
            return self.limit
        before = baseline[self.figure]
        return before + (before * self.limit / 100 if self.percent else self.limit)


def rules(text: str) -> list[Rule]:
    """Parse the comma-separated rules of --fail-if. Raises `UsageFailed`."""
    return [_rule(rule.strip()) for rule in text.split(",")]


def _rule(text: str) -> Rule:
    match = _RULE.fullmatch(text)
    if match is None:
        help = "write cycles>+2%, sbuf_peak>24MiB or dma_bytes>+0"
        raise _bad(text, "expected FIGURE>LIMIT", help)
    figure, plus, number, unit = match.groups()
    if figure not in FIGURES:
        raise _bad(text, f"there is no figure `{figure}`", suggestion(figure, FIGURES))
    if unit == "%" and not plus:
        help = f"write {figure}>+{number}% to compare with a baseline"
        raise _bad(text, "a percentage needs a baseline", help)
    scale = 1 if unit == "%" else _UNITS[unit[:1]]
    return Rule(figure, float(number) * scale, bool(plus), unit == "%", text)


def _bad(text: str, why: str, help: str) -> UsageFailed:
    return bad_value(f"--fail-if {clean(text)}: {why}", help)


def broken(
    rules: list[Rule], figures: Mapping[str, float], baseline: Mapping[str, float] | None
) -> list[Diagnostic]:
    """Return an error for each rule that the run breaks."""
    return [
        _exceeded(rule, figures[rule.figure], rule.maximum(baseline))
        for rule in rules
        if figures[rule.figure] > rule.maximum(baseline)
    ]


def _exceeded(rule: Rule, value: float, maximum: float) -> Diagnostic:
    name = f"{rule.figure} ({FIGURES[rule.figure]})"
    text = f"{name} is {value:,.0f}, more than {maximum:,.0f}"
    help = "nki-run --diff shows which lines cost more; --save-baseline accepts what they cost"
    return make("budget-exceeded", text, notes=[f"--fail-if {rule.text}"], help=help)
