"""The parts of the page that need no script: tables and annotated source."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from nkic.base.source import SourceFile
from nkic.base.text import clean, grouped, size
from nkic.neff import places
from nkic.report.compare.changes import Changes
from nkic.report.insight.memory import peak
from nkic.report.insight.sources import Line
from nkic.report.insight.verdict import Insight
from nkic.report.run_report import RunReport
from nkic.report.views import annotate

MAX_CRITICAL = 12  # rows that are shown at once
MAX_LISTED = 500  # rows that can be opened
_PLACE = re.compile(r"[^\s,;()]+:\d+")


def escaped(text: object) -> str:
    """Escape any text for HTML."""
    return escape(clean(str(text), keep="\t"))


class Links:
    """The lines that the page shows, and links to them."""

    def __init__(self, insight: Insight, sources: Mapping[str, SourceFile]) -> None:
        shown: dict[str, set[int]] = {}
        for line in insight.accounts.by_line:
            if line.number:
                shown.setdefault(line.path, set()).add(line.number)
        self.numbers = {path: sorted(shown[path]) for path in sorted(shown)}
        for path in self.numbers.keys() & sources.keys():
            self.numbers[path] = [*range(1, annotate.line_count(sources[path]) + 1)]
        self._files = {path: number for number, path in enumerate(self.numbers)}
        self._ids: dict[str, str] = {}
        names = Counter(Line(path, 1).short for path in self.numbers)
        for path, numbers in self.numbers.items():
            for line in (Line(path, number) for number in numbers):
                self._ids[str(line)] = self.id(line)
                if names[Line(path, 1).short] == 1:
                    self._ids[line.short] = self.id(line)

    def id(self, line: Line) -> str:
        """Return the name of a line's row."""
        return f"line-{self._files[line.path]}-{line.number}"

    def linked(self, text: object) -> str:
        """Escape text, and make every place that the page shows a link."""

        def link(match: re.Match[str]) -> str:
            target = self._ids.get(match[0])
            return f'<a href="#{target}">{escaped(match[0])}</a>' if target else escaped(match[0])

        words, parts, end = clean(str(text), keep="\t"), [], 0
        for match in _PLACE.finditer(words):
            parts += [escaped(words[end : match.start()]), link(match)]
            end = match.end()
        return "".join([*parts, escaped(words[end:])])


def table(
    caption: str,
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    numbers: Iterable[int] = (),
    links: Links | None = None,
) -> str:
    """Return a table of texts; columns of numbers are right-aligned, and the cell after them (else
    the first) names the row.
    """
    right = set(numbers)
    name = next((i for i in range(len(head)) if i not in right), 0)
    mark = [' class="number"' if i in right else "" for i in range(len(head))]
    made = links.linked if links is not None else escaped
    top = "".join(f'<th scope="col"{mark[i]}>{escaped(cell)}</th>' for i, cell in enumerate(head))
    tags = ['th scope="row"' if i == name else f"td{mark[i]}" for i in range(len(head))]
    body = "".join(
        "<tr>"
        + "".join(f"<{tags[i]}>{made(cell)}</{tags[i][:2]}>" for i, cell in enumerate(row))
        + "</tr>"
        for row in rows
    )
    titles = f"<thead><tr>{top}</tr></thead>" if any(head) else ""
    return f'<table aria-label="{escaped(caption)}">{titles}<tbody>{body}</tbody></table>'


class Parts:
    """The parts that are made from the analysis of a run."""

    def __init__(self, insight: Insight, links: Links) -> None:
        self.insight = insight
        self.links = links

    def answers(self) -> str:
        """Return the hypothetical changes, greatest gain first; a negative one is a loss."""
        end = self.insight.trace.end or 1
        rows = [
            (
                f"{100 * (1 - answer.time_ps / end):.1f}%",
                f"{answer.time_ps / 1e6:,.2f} us",
                answer.words + answer.how,
                "kernel" if answer.is_advice else "machine",
            )
            for answer in self.insight.verdict.told
        ]
        if not rows:
            return "<p>No change was tried.</p>"
        head = ("less time", "run takes", "change", "changes the")
        return table("Runs with changes", head, rows, (0, 1), self.links)

    def critical(self) -> str:
        """Return the lines and loop iterations that take most of the critical path."""
        ranked = by_iteration(self.insight)
        end, clock = self.insight.trace.end or 1, self.insight.accounts.target.base_clock_mhz
        rows = [
            (f"{100 * t / end:.1f}%", grouped(round(t * clock / 1e6)), line, iterations, spent)
            for (line, iterations, spent), t in ranked[:MAX_LISTED]
        ]
        if not rows:
            return ""
        head = ("path", "cycles", "line", "iteration", "spent on")
        first = table("Critical path", head, rows[:MAX_CRITICAL], (0, 1), self.links)
        hidden = len(ranked) - MAX_CRITICAL
        if hidden <= 0:
            return first
        rest = table("Rest of the critical path", head, rows[MAX_CRITICAL:], (0, 1), self.links)
        left = len(ranked) - len(rows)
        note = f"<p>{grouped(left)} smaller rows are left out.</p>" if left else ""
        return (
            f"{first}<details><summary>and {grouped(hidden)} more</summary>{rest}{note}</details>"
        )

    def owners(self) -> str:
        """Return the owners of the bytes at each memory's peak."""
        ranges, rows = self.insight.live_ranges, []
        for buffer in sorted({life.buffer for life in ranges}, key=lambda b: b.value):
            for name, line, bytes in peak(ranges, buffer).owners:
                rows.append((buffer.value.upper(), name, line, size(bytes)))
        head = ("at the peak of", "tensor", "declared in", "bytes")
        return table("Tensors at the peak of each memory", head, rows, (3,), self.links)

    def annotated(self, sources: Mapping[str, SourceFile]) -> str:
        """Return every file with its costs."""
        found = "".join(
            self._file(path, numbers, sources.get(path))
            for path, numbers in self.links.numbers.items()
        )
        return f"{found}<p class='hint'>{annotate.NOTE}</p>"

    def _file(self, path: str, numbers: Iterable[int], source: SourceFile | None) -> str:
        titles = (*annotate.HEAD, "line", "source")
        head = "".join(f'<th scope="col">{cell}</th>' for cell in titles)
        rows = "".join(self._row(Line(path, number), source) for number in numbers)
        return (
            f"<h3>{escaped(path)}</h3><div class='source' tabindex='0' role='region' "
            f"aria-label='Source of {escaped(path)}'><table><thead><tr>{head}</tr></thead>"
            f"<tbody>{rows}</tbody></table></div>"
        )

    def _row(self, line: Line, source: SourceFile | None) -> str:
        accounts = self.insight.accounts
        cost = accounts.by_line.get(line)
        text = escaped(source.line(line.number)) if source is not None else ""
        code = f'<td class="code">{text}</td>'
        if cost is None:
            empty = "<td></td>" * len(annotate.HEAD)
            at = f'<th scope="row" class="at">{line.number}</th>'
            return f'<tr id="{self.links.id(line)}">{empty}{at}{code}</tr>'
        inner = "".join(
            f'<tr class="inner">{_cells(cells)}<td></td><td>in {escaped(inner)}</td></tr>'
            for inner, cells in annotate.inside(self.insight, line)
        )
        button = (
            f'<button type="button" aria-pressed="false" data-line="{escaped(line)}" '
            f'aria-label="line {line.number}: show it in the timeline">{line.number}</button>'
        )
        at = f'<th scope="row" class="at">{button}</th>'
        cells = _cells(annotate.cost_cells(self.insight, cost))
        return f'<tr id="{self.links.id(line)}" class="costs">{cells}{at}{code}</tr>{inner}'


def _cells(texts: Sequence[str]) -> str:
    """Return the cells of a line's costs."""
    share, *cells = texts
    bar = f'<td class="number bar" data-part="{share.rstrip("%")}">{share}</td>'
    classes = ("number", "", "number", "", "number")
    return (bar if share else "<td></td>") + "".join(
        f'<td class="{name}">{escaped(cell)}</td>'
        for name, cell in zip(classes, cells, strict=True)
    )


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


def resources(run: RunReport) -> str:
    """Return the kernel's use of the machine."""
    used = run.resources
    rows = [
        ("SBUF reserved", f"{size(used['sbuf_bytes'])} of {size(used['sbuf_limit'])}"),
        ("PSUM reserved", f"{used['psum_banks']} of {used['psum_limit']} banks"),
        ("transfers", f"{grouped(run.dma_bytes)} bytes"),
        *((f"{name} instructions", grouped(n)) for name, n in used["instructions"].items() if n),
    ]
    return table("Resources", ("resource", "used"), rows)


def changed(changes: Changes) -> str:
    """Return the changes against another run."""
    tables = [
        table(title, (title, "before", "after", "change"), (row.cells() for row in rows), (1, 2, 3))
        for title, rows in changes.tables()
        if rows
    ]
    return f"<p>{escaped(changes.headline)}</p>{''.join(tables)}"
