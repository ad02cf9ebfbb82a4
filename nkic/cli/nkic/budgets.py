"""--max: limits on a kernel's use of memory; --report: its actual use."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

from nkic.base.diagnostics import Diagnostic, bad_value, make
from nkic.base.files import STANDARD
from nkic.base.suggest import did_you_mean
from nkic.base.text import clean, grouped
from nkic.driver.compiled import Compiled
from nkic.report import allocation_picture, allocations
from nkic.report.resources import Resources

_RULE = re.compile(r"([a-z]+)\s*=\s*(\d{1,15}(?:\.\d{1,6})?)\s*(%|[KMG](?:iB|B)?|B|)")
_UNITS = {"": 1, "B": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
RESOURCES = "resources"


class Budget(NamedTuple):
    """A limit on a memory: bytes of SBUF, banks of PSUM, or a share of it if `percent`."""

    memory: str
    limit: float
    percent: bool
    text: str


def budgets(values: Sequence[str]) -> list[Budget]:
    """Parse the words of --max. Raises `UsageFailed`."""
    return [_budget(budget.strip()) for value in values for budget in value.split(",")]


def _budget(text: str) -> Budget:
    match = _RULE.fullmatch(text)
    if match is None:
        _bad(text, "expected MEMORY=LIMIT", "write sbuf=90%, sbuf=20MiB or psum=6")
    memory, number, unit = match.groups()
    if memory not in ("sbuf", "psum"):
        near = did_you_mean(memory, ("sbuf", "psum")) or "the memories are sbuf and psum"
        _bad(text, f"there is no memory `{memory}`", near)
    if memory == "psum" and unit not in ("", "%"):
        _bad(text, "PSUM is counted in banks", "write psum=6 or psum=75%")
    scale = 1 if unit == "%" else _UNITS[unit[:1]]
    return Budget(memory, float(number) * scale, unit == "%", text)


def _bad(text: str, why: str, help: str) -> NoReturn:
    raise bad_value(f"--max {clean(text)}: {why}", help)


def exceeded(wanted: Sequence[Budget], resources: Resources) -> list[Diagnostic]:
    """Return an error for each budget that the kernel exceeds."""
    memories = {
        "sbuf": (resources.sbuf_bytes, resources.sbuf_limit, "bytes of SBUF"),
        "psum": (resources.psum_banks, resources.psum_limit, "banks of PSUM"),
    }
    errors = []
    for budget in wanted:
        used, capacity, unit = memories[budget.memory]
        allowed = capacity * budget.limit / 100 if budget.percent else budget.limit
        if used > allowed:
            text = f"the kernel takes {grouped(used)} {unit}, more than {allowed:,.0f}"
            help = "nkic --report resources shows which tensors use them, and when"
            errors.append(make("budget-exceeded", text, notes=[f"--max {budget.text}"], help=help))
    return errors


def report_path(value: str) -> str:
    """Return the path in `resources[=FILE]`, by default standard output. Raises `UsageFailed`."""
    kind, equals, path = value.partition("=")
    if kind != RESOURCES or (equals and not path):
        text = f"--report {clean(value)}: there is no such report"
        help = f"write {RESOURCES}, {RESOURCES}=FILE.txt, FILE.json or FILE.svg"
        raise bad_value(text, help)
    return path or STANDARD


def report(compiled: Compiled, path: str) -> str:
    """Return the kernel's use of memory, as JSON or as a picture if the file's name says so."""
    if path.endswith(".svg"):
        return allocation_picture.svg(compiled.executable)
    if path.endswith(".json"):
        return json.dumps(allocations.as_json(compiled.executable), indent=1) + "\n"
    return allocations.text(compiled.executable)
