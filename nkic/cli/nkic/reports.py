"""--report: what the stages did and what the kernel uses; --fail-if: limits on it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import NamedTuple

from nkic.base import files
from nkic.base.diagnostics import Diagnostic, bad_value
from nkic.base.files import STANDARD
from nkic.base.suggest import suggestion
from nkic.base.text import clean
from nkic.cli.common import pages
from nkic.cli.nkic.options import REPORTS
from nkic.driver import changes, remarks
from nkic.driver.compiled import Compiled
from nkic.report import allocation_picture, allocations
from nkic.report import remarks as forms
from nkic.report.compare import budget
from nkic.report.resources import resources

FIGURES = ("sbuf_peak", "psum_banks")  # the figures that are known without a run
# The formats that file names request beside text.
_FORMATS: dict[str, tuple[str, ...]] = {
    "resources": (".json", ".svg"),
    "remarks": (".json",),
    "changes": (),
}
_OTHER = (".json", ".svg", ".yaml", ".yml", ".html")


class Wanted(NamedTuple):
    """A requested report."""

    kind: str
    path: str


def wanted(values: Sequence[str]) -> list[Wanted]:
    """Parse the values of --report. Raises `UsageFailed`."""
    return [_wanted(value) for value in values]


def _wanted(value: str) -> Wanted:
    kind, equals, path = value.partition("=")
    if kind not in REPORTS or (equals and not path):
        text = f"--report {clean(value)}: there is no such report"
        raise bad_value(text, suggestion(kind, REPORTS))
    formats = _FORMATS[kind]
    if path.endswith(_OTHER) and not path.endswith(formats):
        text = f"--report {clean(value)}: {kind} are not written in this format"
        raise bad_value(text, f"end the file's name in {', '.join((*formats, '.txt'))}")
    return Wanted(kind, path or STANDARD)


def write(
    report: Wanted, colour: str, compiled: Compiled, level: int, shown: Callable[[str], str]
) -> None:
    """Write a report. `shown` maps a path to the user's spelling of it."""
    path = report.path
    if report.kind == "changes":
        text = clean("".join(changes.changes(compiled)), keep="\n")
        text = pages.difference(text, colour) if path == STANDARD else text
    elif report.kind == "remarks":
        form = forms.as_json if path.endswith(".json") else forms.text
        text = form(remarks.remarks(compiled, level), shown)
    elif path.endswith(".svg"):
        text = allocation_picture.svg(compiled.executable)
    elif path.endswith(".json"):
        text = json.dumps(allocations.as_json(compiled.executable), indent=1) + "\n"
    else:
        text = allocations.text(compiled.executable)
    files.write(path, text)


def rules(text: str | None) -> list[budget.Rule]:
    """Parse the rules of --fail-if. Raises `UsageFailed`."""
    return budget.rules(text, FIGURES)


def exceeded(limits: Sequence[budget.Rule], compiled: Compiled) -> list[Diagnostic]:
    """Return an error for each figure of the kernel above its limit."""
    used = resources(compiled.executable)
    figures = {"sbuf_peak": used.sbuf_bytes, "psum_banks": used.psum_banks}
    capacities = {"sbuf_peak": used.sbuf_limit, "psum_banks": used.psum_limit}
    help = "nkic --report resources shows which tensors use them, and when"
    return budget.broken(limits, figures, None, capacities, help)
