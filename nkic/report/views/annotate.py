"""The kernel's source with the costs of each line in the margin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nkic.base.source import SourceFile
from nkic.base.text import clean, grouped, size
from nkic.machine.targets import Target
from nkic.report.insight.costs import LineCost
from nkic.report.insight.sources import Line
from nkic.report.insight.verdict import Insight

HEAD = ("path", "cycles", "on", "runs", "waited for", "bytes")
NOTE = "cycles and waits add up over engines and queues side by side: they may exceed the run"
CAUSES = 2  # causes of waiting that are named


def annotated(insight: Insight, sources: Mapping[str, SourceFile]) -> str:
    """Return every file with a line that has a cost; only those lines if the file's text is
    missing.

    Columns: the line's part of the critical path, the cycles of the base clock for which it held
    engines, the engine it held longest, its executions, what engines waited for before it (cycles),
    and the bytes from and to HBM.
    """
    costs = insight.accounts.by_line
    paths = sorted({line.path for line in costs if line.number})
    files = ["".join(_file(insight, path, sources.get(path))) for path in paths]
    return "\n".join([*files, NOTE + "\n"])


def _file(insight: Insight, path: str, source: SourceFile | None) -> Iterator[str]:
    costs = {
        line.number: cost for line, cost in insight.accounts.by_line.items() if line.path == path
    }
    rows = {number: cost_cells(insight, cost) for number, cost in costs.items()}
    lines = [line for line in insight.accounts.by_line if line.path == path]
    inner = {line.number: inside(insight, line) for line in lines}
    all_cells = [HEAD, *rows.values(), *(cells for calls in inner.values() for _, cells in calls)]
    widths = [max(len(row[i]) for row in all_cells) for i in range(len(HEAD))]
    yield f"{clean(path)}\n{_margin(HEAD, widths)} |\n"
    numbers = range(1, line_count(source) + 1) if source is not None else sorted(rows)
    for number in numbers:
        text = clean(source.line(number), keep="\t").rstrip() if source is not None else ""
        margin = _margin(rows.get(number, ("",) * len(HEAD)), widths)
        yield f"{margin} | {number:4d}  {text}".rstrip() + "\n"
        for line, cells in inner.get(number, ()):
            yield f"{_margin(cells, widths)} |       in {line}\n"


def line_count(source: SourceFile) -> int:
    """Return the number of lines, without an empty one at the end."""
    return len(source.lines) - (not source.lines[-1])


def inside(insight: Insight, line: Line) -> list[tuple[Line, tuple[str, ...]]]:
    """Return the lines of nkic's library that a line called, with their parts of its costs.

    A single one that has all of them gets no figures: they would be there twice.
    """
    accounts = insight.accounts
    called = {inner: cost for (at, inner), cost in accounts.inside.items() if at == line}
    rows = [(inner, cost_cells(insight, called[inner])) for inner in sorted(called)]
    if len(rows) == 1 and rows[0][1] == cost_cells(insight, accounts.by_line[line]):
        return [(rows[0][0], ("",) * len(HEAD))]
    return rows


def _margin(cells: tuple[str, ...], widths: list[int]) -> str:
    aligned = [
        cell.ljust(width) if i in (2, 4) else cell.rjust(width)
        for i, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(aligned)


def cost_cells(insight: Insight, cost: LineCost) -> tuple[str, ...]:
    """Return the cells of a line's costs, in the order of `HEAD`."""
    target, end = insight.accounts.target, insight.trace.end or 1
    ranked = sorted(cost.stalls.items(), key=lambda pair: (-pair[1], pair[0]))
    waits = [f"{cause} {_cycles(time, target)}" for cause, time in ranked[:CAUSES] if time]
    return (
        f"{100 * cost.critical / end:.1f}%" if cost.critical else "",
        _cycles(cost.time, target) if cost.time else "",
        cost.main,
        grouped(cost.executions) if cost.executions else "",
        ", ".join(waits),
        size(cost.hbm) if cost.hbm else "",
    )


def _cycles(time: int, target: Target) -> str:
    return grouped(round(time * target.base_clock_mhz / 1_000_000))
