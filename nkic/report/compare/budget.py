"""Limits on the figures of a run or a kernel: `cycles>+2%, sbuf_peak>24MiB, psum_banks>75%`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from nkic.base.diagnostics import Diagnostic, UsageFailed, bad_value, make
from nkic.base.suggest import suggestion
from nkic.base.text import clean
from nkic.report.compare.profiles import FIGURES

_RULE = re.compile(r"([a-z_]+)\s*>\s*(\+?)\s*(\d{1,18}(?:\.\d{1,9})?)\s*(%|[KMGT](?:iB|B)?|B|)")
MEMORIES = ("sbuf_peak", "psum_banks")  # figures with a capacity
BYTES = ("dma_bytes", "hbm_read_bytes", "hbm_write_bytes", "sbuf_peak")
VALUES = ("nan", "inf")  # kinds of values in outputs, which are not figures
_UNITS = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class Rule(NamedTuple):
    """An upper limit on `figure`: absolute, or above the baseline if `above`; if `percent`, in
    percent of the memory, or of the baseline.
    """

    figure: str
    limit: float
    above: bool
    percent: bool
    text: str

    def maximum(
        self, baseline: Mapping[str, float] | None, capacities: Mapping[str, float]
    ) -> float:
        """Return the greatest allowed value. Raises `UsageFailed`."""
        if self.percent and not self.above:
            if self.figure not in capacities:
                raise _bad(self.text, "the size of the memory is not known", "write a number")
            return capacities[self.figure] * self.limit / 100
        if not self.above or baseline is None:
            return self.limit
        before = baseline[self.figure]
        return before + (before * self.limit / 100 if self.percent else self.limit)


def rules(text: str | None, known: Collection[str] = FIGURES) -> list[Rule]:
    """Parse the comma-separated rules of --fail-if about figures. Raises `UsageFailed`."""
    words = [rule.strip() for rule in text.split(",")] if text is not None else []
    return [_rule(word, known) for word in words if word not in VALUES or known is not FIGURES]


def _rule(text: str, known: Collection[str]) -> Rule:
    match = _RULE.fullmatch(text)
    if match is None:
        help = "write cycles>+2%, sbuf_peak>24MiB or dma_bytes>+0"
        raise _bad(text, "expected FIGURE>LIMIT", help if known is FIGURES else "psum_banks>6")
    figure, plus, number, unit = match.groups()
    if figure not in known:
        raise _bad(text, f"there is no figure `{figure}`", suggestion(figure, known))
    if plus and known is not FIGURES:
        raise _bad(text, "a compilation has no baseline", f"write {figure}>{number}{unit}")
    if unit not in ("", "%") and figure not in BYTES:
        raise _bad(text, f"{FIGURES[figure]} are not counted in bytes", f"write {figure}>{number}")
    if unit == "%" and not plus and figure not in MEMORIES:
        help = f"write {figure}>+{number}% to compare with a baseline"
        raise _bad(text, "a percentage needs a baseline", help)
    scale = 1 if unit == "%" else _UNITS[unit[:1]]
    return Rule(figure, float(number) * scale, bool(plus), unit == "%", text)


def _bad(text: str, why: str, help: str) -> UsageFailed:
    return bad_value(f"--fail-if {clean(text)}: {why}", help)


def broken(
    rules: Sequence[Rule],
    figures: Mapping[str, float],
    baseline: Mapping[str, float] | None,
    capacities: Mapping[str, float],
    help: str = "`nki-run compare` shows which lines cost more, from the --json of both runs",
) -> list[Diagnostic]:
    """Return an error for each rule that the figures break. Raises `UsageFailed`."""
    maxima = [(rule, rule.maximum(baseline, capacities)) for rule in rules]
    return [
        _exceeded(rule, figures[rule.figure], maximum, help)
        for rule, maximum in maxima
        if figures[rule.figure] > maximum
    ]


def _exceeded(rule: Rule, value: float, maximum: float, help: str) -> Diagnostic:
    name = f"{rule.figure} ({FIGURES[rule.figure]})"
    text = f"{name} is {value:,.0f}, more than {maximum:,.0f}"
    return make("budget-exceeded", text, notes=[f"--fail-if {rule.text}"], help=help)
