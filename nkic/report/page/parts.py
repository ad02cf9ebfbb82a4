"""The parts of the page that need no script: tables and annotated source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from nkic.base.source import SourceFile
from nkic.base.text import clean, grouped, size
from nkic.neff import places
from nkic.report.compare.changes import Changes
from nkic.report.insight.costs import LineCost
from nkic.report.insight.memory import peak
from nkic.report.insight.sources import Line
from nkic.report.insight.verdict import Insight
from nkic.report.views import annotate

MAX_CRITICAL = 12  # rows


def escaped(text: object) -> str:
    """Escape any text for HTML."""
    return escape(clean(str(text), keep="\t"))


def table(
    head: Sequence[str], rows: Iterable[Sequence[object]], numbers: Iterable[int] = ()
) -> str:
    """Return a table of texts; columns of numbers are right-aligned."""
    right = set(numbers)
    mark = [' class="number"' if i in right else "" for i in range(len(head))]
    top = "".join(f'<th scope="col"{mark[i]}>{escaped(cell)}</th>' for i, cell in enumerate(head))
    body = "".join(
        "<tr>"
        + "".join(f"<td{mark[i]}>{escaped(cell)}</td>" for i, cell in enumerate(row))
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def answers(insight: Insight) -> str:
    """Return the hypothetical changes, greatest gain first; a negative one is a loss."""
    end = insight.trace.end or 1
    rows = [
        (
            f"{100 * (1 - answer.time_ps / end):.1f}%",
            f"{answer.time_ps / 1e6:,.2f} us",
            "advice" if answer.is_advice else "limit",
            answer.words,
        )
        for answer in insight.verdict.answers
    ]
    return table(("less time", "run takes", "kind", "change"), rows, (0, 1)) if rows else ""


def critical(insight: Insight) -> str:
    """Return the lines and loop iterations that take most of the critical path."""
    ranked = by_iteration(insight)
    end, clock = insight.trace.end or 1, insight.accounts.target.base_clock_mhz
    rows = [
        (f"{100 * time / end:.1f}%", grouped(round(time * clock / 1e6)), line, iterations, spent)
        for (line, iterations, spent), time in ranked[:MAX_CRITICAL]
    ]
    head = ("path", "cycles", "line", "iteration", "spent on")
    hidden = len(ranked) - len(rows)
    remainder = f"<p>and {grouped(hidden)} more</p>" if hidden > 0 else ""
    return table(head, rows, (0, 1)) + remainder if rows else ""


def by_iteration(insight: Insight) -> list[tuple[tuple[str, str, str], int]]:
    """Return the critical path's time in picoseconds by line, loop iterations and use, greatest
    first.
    """
    times: Counter[tuple[str, str, str]] = Counter()
    for segment in insight.path:
        event = insight.trace.events[segment.event]
        line = insight.accounts.lines.of(event.record.place)
        iterations = places.iterations(insight.trace.executable, event.record)
        times[str(line), iterations, segment.spent.value] += segment.time
    return sorted(times.items(), key=lambda pair: (-pair[1], pair[0]))


def resources(run: Mapping[str, Any]) -> str:
    """Return the kernel's use of the machine."""
    used = run["resources"]
    rows = [
        ("SBUF", f"{size(used['sbuf_bytes'])} of {size(used['sbuf_limit'])}"),
        ("PSUM", f"{used['psum_banks']} of {used['psum_limit']} banks"),
        ("transfers", f"{grouped(run['dma_bytes'])} bytes"),
        *((f"{name} instructions", grouped(n)) for name, n in used["instructions"].items() if n),
        ("target", run["target"]),
        ("program", run["id"]),
    ]
    return table(("resource", "used"), rows)


def compared(changes: Changes) -> str:
    """Return the changes against another run."""
    tables = [
        table((title, "before", "after", "change"), (row.cells() for row in rows), (1, 2, 3))
        for title, rows in changes.tables()
        if rows
    ]
    return f"<p>{escaped(changes.headline)}</p>{''.join(tables)}"


def owners(insight: Insight) -> str:
    """Return the owners of the bytes at each memory's peak."""
    rows = []
    for buffer in sorted({life.buffer for life in insight.live_ranges}, key=lambda b: b.value):
        for name, line, bytes in peak(insight.live_ranges, buffer).owners:
            rows.append((buffer.value.upper(), name, line, size(bytes)))
    return table(("at the peak of", "tensor", "declared in", "bytes"), rows, (3,))


def annotated(insight: Insight, sources: Mapping[str, SourceFile]) -> str:
    """Return every file with its costs."""
    paths = sorted({line.path for line in insight.accounts.by_line if line.number})
    return "".join(_file(insight, path, sources.get(path)) for path in paths)


def _file(insight: Insight, path: str, source: SourceFile | None) -> str:
    costs = {line: cost for line, cost in insight.accounts.by_line.items() if line.path == path}
    numbers = sorted(line.number for line in costs)
    if source is not None:
        numbers = list(range(1, annotate.line_count(source) + 1))
    head = "".join(f'<th scope="col">{cell}</th>' for cell in (*annotate.HEAD, "line", "source"))
    rows = "".join(_row(insight, Line(path, number), source) for number in numbers)
    return (
        f"<h3>{escaped(path)}</h3><div class='source' tabindex='0' role='region' "
        f"aria-label='Source of {escaped(path)}'><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
    )


def _row(insight: Insight, line: Line, source: SourceFile | None) -> str:
    cost = insight.accounts.by_line.get(line)
    text = escaped(source.line(line.number)) if source is not None else ""
    source_cells = f'<td class="at">{line.number}</td><td class="code">{text}</td>'
    if cost is None:
        return f"<tr>{'<td></td>' * len(annotate.HEAD)}{source_cells}</tr>"
    inner = "".join(
        f'<tr class="inner">{_cells(insight, line_cost)}<td></td><td>in {escaped(inner)}</td></tr>'
        for (caller, inner), line_cost in sorted(
            insight.accounts.inside.items(), key=lambda pair: pair[0]
        )
        if caller == line
    )
    return (
        f'<tr class="costs" tabindex="0" role="button" aria-pressed="false" '
        f'data-line="{escaped(line)}">{_cells(insight, cost)}{source_cells}</tr>{inner}'
    )


def _cells(insight: Insight, cost: LineCost) -> str:
    share, *cells = annotate.cost_cells(insight, cost)
    bar = f'<td class="number bar" data-part="{share.rstrip("%")}">{share}</td>'
    classes = ("number", "", "number", "", "number")
    return (bar if share else "<td></td>") + "".join(
        f'<td class="{name}">{escaped(cell)}</td>'
        for name, cell in zip(classes, cells, strict=True)
    )
