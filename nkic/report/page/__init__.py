"""Assembly of the HTML page."""

from __future__ import annotations

import base64
import json
import keyword
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from html import escape
from importlib.resources import files
from math import ceil, floor, log10
from string import Template
from typing import Any, NamedTuple

import numpy as np

from nkic.artifact import records
from nkic.base.source import SourceFile
from nkic.base.text import clean, grouped, size
from nkic.machine.targets import SHORT_NAMES, Engine
from nkic.report import lanes, run_report, traces
from nkic.report.compare import Changes
from nkic.report.costs import edges, peak
from nkic.report.critical import Line, Spent
from nkic.report.run_report import RunReport
from nkic.report.verdict import Insight

# ------------------------------------------------------------------------------------------------
# The data of the page as compact columns: a run of 200,000 instructions takes a few megabytes.


class _Names:
    """Interned texts by number."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def __call__(self, name: str) -> int:
        return self.numbers.setdefault(name, len(self.numbers))


def column(values: Iterable[float], kind: str) -> str:
    """Return numbers as base64 of their bytes, in little-endian order."""
    return base64.b64encode(np.fromiter(values, f"<{kind}").tobytes()).decode("ascii")


def columns(insight: Insight) -> dict[str, Any]:
    """Return tracks, instructions, the critical path and memory."""
    names, lines = _Names(), _Names()
    return {
        "end": insight.trace.end,
        "clock": insight.accounts.target.base_clock_mhz,
        "tracks": _tracks(insight),
        "events": _events(insight, names, lines),
        "triggers": _triggers(insight),
        "path": _path(insight),
        "edges": _edges(insight),
        "memory": [_memory(insight, buffer, names, lines) for buffer in ("sbuf", "psum")],
        "names": [clean(name) for name in names.numbers],
        "lines": [clean(line) for line in lines.numbers],
        "iterations": [clean(iterations) for iterations in insight.trace.executable.iterations],
        "causes": list(_causes(insight)),
    }


def _tracks(insight: Insight) -> list[dict[str, Any]]:
    streams = traces.streams(insight)
    triggering = {trigger.track for trigger in traces.triggers(insight)}
    return [
        {
            "stream": stream,
            "name": name,
            "engine": streams[stream].engine.value,
            "triggers": stream in triggering,
        }
        for stream, name in traces.track_names(insight).items()
    ]


def _causes(insight: Insight) -> dict[str, int]:
    causes = sorted({cause for cost in insight.accounts.by_line.values() for cause in cost.stalls})
    return {cause: number for number, cause in enumerate(["", *causes])}


def _events(insight: Insight, names: _Names, lines: _Names) -> dict[str, str]:
    """Return one value per event of the trace; empty slots have the name -1."""
    accounts, causes = insight.accounts, _causes(insight)
    events = insight.trace.events
    waits = [max(accounts.stalls(e), key=lambda pair: pair[1], default=("", 0)) for e in events]
    kinds = [names(e.record.row.name) if e.record.row is not None else -1 for e in events]
    return {
        "stream": column((e.stream for e in events), "u2"),
        "start": column((e.start for e in events), "f8"),
        "time": column((e.free - e.start for e in events), "f8"),
        "done": column((e.done - e.start for e in events), "f8"),
        "name": column(kinds, "i4"),
        "line": column((lines(str(accounts.lines.of(e.record.place))) for e in events), "i4"),
        "iterations": column((e.record.iterations for e in events), "i4"),
        "before": column((e.pool_before if e.is_late else e.before for e in events), "i4"),
        "cause": column((causes[cause] for cause, _ in waits), "u1"),
        "wait": column((time for _, time in waits), "f8"),
        "bytes": column((e.bytes for e in events), "f8"),
    }


def _triggers(insight: Insight) -> dict[str, str]:
    """Return the time that transfers take on the engines that trigger them."""
    slices = [*traces.triggers(insight)]
    return {
        "event": column((trigger.event for trigger in slices), "i4"),
        "stream": column((trigger.track for trigger in slices), "u2"),
        "start": column((trigger.start for trigger in slices), "f8"),
        "time": column((trigger.end - trigger.start for trigger in slices), "f8"),
    }


def _path(insight: Insight) -> dict[str, str]:
    """Return the critical path; a trigger is on the track of the engine that triggers."""
    by = {trigger.event: trigger.track for trigger in traces.triggers(insight)}
    events = insight.trace.events
    held = (
        by.get(segment.event, events[segment.event].stream)
        if segment.spent is Spent.TRIGGER
        else events[segment.event].stream
        for segment in insight.path
    )
    return {
        "event": column((segment.event for segment in insight.path), "i4"),
        "stream": column(held, "u2"),
        "start": column((segment.start for segment in insight.path), "f8"),
        "end": column((segment.end for segment in insight.path), "f8"),
    }


MOST_EDGES = 500_000  # four megabytes of the page


def _edges(insight: Insight) -> dict[str, str]:
    """Return the dependences: of every instruction, those that it needs; none if they are many.

    Left out are those within an engine, which has an order anyway.
    """
    found = edges(insight.trace, insight.accounts.uses)
    pairs = sorted({(edge.after, edge.before) for edge in found if len(found) <= MOST_EDGES})
    return {
        "after": column((after for after, _ in pairs), "i4"),
        "needs": column((before for _, before in pairs), "i4"),
    }


def _memory(insight: Insight, buffer: str, names: _Names, lines: _Names) -> dict[str, Any]:
    live_ranges = [life for life in insight.live_ranges if life.buffer.value == buffer]
    target = insight.accounts.target
    limits = {"sbuf": target.sbuf_usable, "psum": target.psum_bytes}
    return {
        "name": buffer.upper(),
        "limit": limits[buffer] * 128 * max(1, insight.trace.executable.cores),
        "tensor": column((names(life.name) for life in live_ranges), "i4"),
        "line": column((lines(str(life.line)) for life in live_ranges), "i4"),
        "start": column((life.start for life in live_ranges), "f8"),
        "end": column((life.end for life in live_ranges), "f8"),
        "bytes": column((life.bytes for life in live_ranges), "f8"),
    }


# ---- The roofline of the page: operations per second over operations per byte of HBM ------------

_LEFT, _RIGHT, _TOP, _BOTTOM = 104, 490, 14, 240  # the axes, in units of the picture


class Roofline(NamedTuple):
    """A run and its machine: `peak` and `reached` in operations per ns, `rate` in bytes per ns,
    `intensity` in operations per byte.
    """

    peak: float
    rate: float
    intensity: float
    reached: float

    @property
    def ridge(self) -> float:
        """The intensity from which operations, not transfers, bound the rate."""
        return self.peak / self.rate

    @property
    def attainable(self) -> float:
        """The rate at this intensity if nothing else bounds it."""
        return min(self.peak, self.rate * self.intensity)

    @property
    def label(self) -> str:
        return (
            f"{self.intensity:.1f} operations per byte, {self.reached / 1000:.2f} of "
            f"{self.attainable / 1000:.2f} attainable TFLOP/s "
            f"({100 * self.reached / self.attainable:.0f}%)"
        )


def roofline(insight: Insight) -> str:
    """Return the picture of a run with matrix products; a sentence for others."""
    target, end = insight.accounts.target, insight.trace.end
    operations = sum(cost.operations for cost in insight.accounts.by_line.values())
    moved = sum(cost.hbm for cost in insight.accounts.by_line.values())
    if not operations or not moved or not end:
        return "<p>No matrix products: the roofline does not apply to this kernel.</p>"
    cores = max(1, insight.trace.executable.cores)
    peak, rate = target.peak_operations * cores, target.peak_rate * cores
    return _picture(Roofline(peak, rate, operations / moved, operations * 1000 / end))


def _picture(roof: Roofline) -> str:
    """Return the picture, on logarithmic axes that contain the run and the ridge."""
    low_x, high_x = min(1.0, roof.intensity / 2), max(roof.ridge * 16, roof.intensity * 2)
    low_y, high_y = min(roof.reached / 2, roof.rate * low_x), roof.peak * 2

    def x(intensity: float) -> float:
        return _LEFT + (_RIGHT - _LEFT) * _share(intensity, low_x, high_x)

    def y(operations: float) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * _share(operations, low_y, high_y)

    top, label, ridge = y(roof.peak), escape(roof.label), x(roof.ridge)
    at_x, at_y = x(roof.intensity), y(roof.reached)
    slope = low_x**0.7 * min(roof.ridge, high_x) ** 0.3
    slope_x, slope_y = x(slope), y(roof.rate * slope)
    line = f"{_LEFT},{y(roof.rate * low_x):.1f} {ridge:.1f},{top:.1f} {_RIGHT},{top:.1f}"
    parts = [
        *(_tick(x(n), _BOTTOM, f"{n:,g}", across=False) for n in _decades(low_x, high_x)),
        *(_tick(_LEFT, y(n), _tera(n), across=True) for n in _decades(low_y, high_y)),
        f'<polyline class="roof" points="{line}"/>',
        f'<line class="gap" x1="{at_x:.1f}" y1="{at_y:.1f}" x2="{at_x:.1f}" '
        f'y2="{y(roof.attainable):.1f}"/>',
        f'<circle class="point" cx="{at_x:.1f}" cy="{at_y:.1f}" r="5"/>',
        _text(_RIGHT, top - 8, f"peak of the tensor engine: {_tera(roof.peak)}", "end"),
        _text(slope_x + 8, slope_y + 8, f"HBM at {roof.rate:,.0f} GB/s", "start"),
        _text(min(at_x, _RIGHT - 76), at_y + 22, f"this run: {_tera(roof.reached)}", "middle"),
        _text(
            (_LEFT + _RIGHT) / 2,
            _BOTTOM + 42,
            f"operations per byte of HBM (ridge at {roof.ridge:,.0f})",
            "middle",
        ),
    ]
    return (
        f'<svg viewBox="0 0 {_RIGHT + 20} {_BOTTOM + 52}" role="img" '
        f'aria-label="Roofline: {label}">{"".join(parts)}</svg><p>{label}</p>'
    )


def _tick(x: float, y: float, label: str, across: bool) -> str:
    """Return a line of the grid from a point of an axis, and its label beside the axis."""
    if across:
        end, text = f'x2="{_RIGHT}" y2="{y:.1f}"', _text(x - 6, y + 4, label, "end")
    else:
        end, text = f'x2="{x:.1f}" y2="{_TOP}"', _text(x, y + 18, label, "middle")
    return f'<line class="axis" x1="{x:.1f}" y1="{y:.1f}" {end}/>{text}'


def _text(x: float, y: float, words: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _decades(low: float, high: float) -> list[float]:
    """Return the powers of ten between two numbers."""
    return [10.0**power for power in range(ceil(log10(low)), floor(log10(high)) + 1)]


def _tera(operations: float) -> str:
    """Format operations per nanosecond: `79 TFLOP/s`, `0.4 TFLOP/s`."""
    return f"{operations / 1000:.3g} TFLOP/s"


def _share(value: float, low: float, high: float) -> float:
    """Return the position of `value` between `low` and `high` on a logarithmic axis, 0 to 1."""
    return (log10(value) - log10(low)) / (log10(high) - log10(low))


# ---- The parts of the page that need no script: tables and annotated source ---------------------

MAX_CRITICAL = 12  # rows that are shown at once
MAX_LISTED = 500  # rows that can be opened
_PLACE = re.compile(r"[^\s,;()]+:\d+")


def escaped(text: object) -> str:
    return escape(clean(str(text), keep="\t"))


NO_TEXT = "The lines have no text: run with --source FILE, or compile with --embed-source."
KINDS = {tokenize.COMMENT: "comment", tokenize.NUMBER: "number", tokenize.STRING: "text"} | {
    getattr(tokenize, f"FSTRING_{part}", -1): "text" for part in ("START", "MIDDLE", "END")
}  # from Python 3.12 on


def coloured(source: SourceFile) -> list[str]:
    """Return the lines of a source as HTML, with the kinds of words that Python distinguishes.

    Nothing is marked behind what Python cannot split into words.
    """
    marks: dict[int, list[tuple[int, int, str]]] = defaultdict(list)
    lines = iter([f"{line}\n" for line in source.lines])
    with suppress(tokenize.TokenError, SyntaxError, ValueError):
        for token in tokenize.generate_tokens(lambda: next(lines, "")):
            kind = "word" if keyword.iskeyword(token.string) else KINDS.get(token.type, "")
            (first, start), (last, end) = token.start, token.end
            for number in range(first, last + 1) if kind else ():
                begin, stop = start if number == first else 0, end if number == last else -1
                marks[number].append((begin, stop, kind))
    return [_marked(line, marks[number]) for number, line in enumerate(source.lines, 1)]


def _marked(line: str, marks: Iterable[tuple[int, int, str]]) -> str:
    parts, at = [], 0
    for begin, stop, kind in marks:
        begin, stop = max(begin, at), len(line) if stop < 0 else stop
        parts += [escaped(line[at:begin]), f'<i class="{kind}">{escaped(line[begin:stop])}</i>']
        at = stop
    return "".join([*parts, escaped(line[at:])])


class Links:
    """The lines that the page shows, and links to them."""

    def __init__(self, insight: Insight, sources: Mapping[str, SourceFile]) -> None:
        shown: dict[str, set[int]] = {}
        for line in insight.accounts.by_line:
            if line.number:
                shown.setdefault(line.path, set()).add(line.number)
        self.numbers = {path: sorted(shown[path]) for path in sorted(shown)}
        for path in self.numbers.keys() & sources.keys():
            self.numbers[path] = [*range(1, lanes.line_count(sources[path]) + 1)]
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
        found = "".join(
            self._file(path, numbers, sources.get(path))
            for path, numbers in self.links.numbers.items()
        )
        return f"{found}<p class='hint'>{lanes.NOTE}</p>"

    def _file(self, path: str, numbers: Iterable[int], source: SourceFile | None) -> str:
        titles = (*lanes.HEAD, "line", "source")
        head = "".join(f'<th scope="col">{cell}</th>' for cell in titles)
        code = coloured(source) if source is not None else []
        rows = "".join(self._row(Line(path, n), *code[n - 1 : n]) for n in numbers)
        hint = "" if source is not None else f"<p class='hint'>{NO_TEXT}</p>"
        return (
            f"<h3>{escaped(path)}</h3>{hint}<div class='source' tabindex='0' role='region' "
            f"aria-label='Source of {escaped(path)}'><table><thead><tr>{head}</tr></thead>"
            f"<tbody>{rows}</tbody></table></div>"
        )

    def _row(self, line: Line, text: str = "") -> str:
        accounts = self.insight.accounts
        cost = accounts.by_line.get(line)
        code = f'<td class="code">{text}</td>'
        if cost is None:
            empty = "<td></td>" * len(lanes.HEAD)
            at = f'<th scope="row" class="at">{line.number}</th>'
            return f'<tr id="{self.links.id(line)}">{empty}{at}{code}</tr>'
        inner = "".join(
            f'<tr class="inner">{_cells(cells)}<td></td><td>in {escaped(inner)}</td></tr>'
            for inner, cells in lanes.inside(self.insight, line)
        )
        button = (
            f'<button type="button" aria-pressed="false" data-line="{escaped(line)}" '
            f'aria-label="line {line.number}: show it in the timeline">{line.number}</button>'
        )
        at = f'<th scope="row" class="at">{button}</th>'
        cells = _cells(lanes.cost_cells(self.insight, cost))
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
    """Return the path's picoseconds by line, loop iterations and use, greatest first."""
    times: Counter[tuple[str, str, str]] = Counter()
    for segment in insight.path:
        event = insight.trace.events[segment.event]
        line = insight.accounts.lines.of(event.record.place)
        iterations = records.iterations(insight.trace.executable, event.record)
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
    tables = [
        table(title, (title, "before", "after", "change"), (row.cells() for row in rows), (1, 2, 3))
        for title, rows in changes.tables()
        if rows
    ]
    return f"<p>{escaped(changes.headline)}</p>{''.join(tables)}"


# --------------------------------------------------------------------------------------------------


class Section(NamedTuple):
    """A part of the page, with its finished HTML."""

    id: str
    title: str
    html: str


def page(
    insight: Insight,
    run: RunReport,
    sources: Mapping[str, SourceFile],
    compared: Changes | None = None,
    command: str = "",
) -> str:
    """Return the page, the same for the same run; every text in it is escaped.

    `sources` are the known texts, `compared` the changes against a baseline, `command` is the
    command line, if there is one.
    """
    links = Links(insight, sources)
    parts = Parts(insight, links)
    sections = [*_sections(parts, run, sources, compared, command)]
    style, script = _asset("page.css"), _asset("page.js")
    drawn = columns(insight)
    line = run_report.time_line(run)
    tracks = ", ".join(track["name"] for track in drawn["tracks"])
    return Template(_asset("page.html")).substitute(
        title=escaped(f"{run.kernel}: {run.cycles:,} cycles"),
        kernel=escaped(run.kernel),
        line=escaped(line),
        device=escaped(run_report.device_line(run)),
        style=style,
        style_hash=_hash(style),
        script=script,
        script_hash=_hash(script),
        links="".join(f'<a href="#{s.id}">{escaped(s.title)}</a>' for s in (*_FIRST, *sections)),
        verdict="".join(f"<p>{links.linked(words)}</p>" for words in insight.verdict.lines),
        legend=_legend(drawn),
        timeline_label=escaped(f"Timeline of {run.kernel}: {tracks}, critical path. {line}"),
        memory_label="Bytes of SBUF and PSUM that hold data over time",
        owners=parts.owners(),
        sections="".join(_section(s) for s in sections),
        data=_embedded(drawn),
    )


_FIRST = (
    Section("verdict", "Verdict", ""),
    Section("time", "Timeline", ""),
    Section("memories", "Memory", ""),
)


def _sections(
    parts: Parts,
    run: RunReport,
    sources: Mapping[str, SourceFile],
    compared: Changes | None,
    command: str,
) -> Iterator[Section]:
    """Yield the sections without a script, in order."""
    if compared is not None:
        yield Section("changes", "Against the baseline", changed(compared))
    yield Section("what-if", "What if", parts.answers())
    yield Section("critical", "Critical path", parts.critical())
    yield Section("source", "Source", parts.annotated(sources))
    yield Section("roofline", "Roofline", roofline(parts.insight))
    yield Section("resources", "Resources", resources(run))
    rows = run_report.about(run, parts.insight.trace.executable, command)
    yield Section("about", "About this run", table("About this run", ("", ""), rows))


def _section(section: Section) -> str:
    title = escaped(section.title)
    head = f'<section id="{section.id}" aria-label="{title}"><h2>{title}</h2>'
    return f"{head}{section.html}</section>\n"


def _legend(drawn: Mapping[str, Any]) -> str:
    """Return what the colours and heights of the timeline mean."""
    engines = dict.fromkeys(track["engine"] for track in drawn["tracks"])
    marks = [(name, SHORT_NAMES[Engine(name)]) for name in engines]
    if any(track["triggers"] for track in drawn["tracks"]):
        marks.append(("half", "half height: triggers a transfer"))
    marks.append(("path", "below a lane: on the critical path"))
    return "".join(f'<li><i class="{mark}"></i>{words}</li>' for mark, words in marks)


def _embedded(value: object) -> str:
    """Return JSON in which no text can end the script element."""
    text = json.dumps(value, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _asset(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")


def _hash(text: str) -> str:
    """Return the hash by which the page's policy allows this text and no other."""
    return f"sha256-{base64.b64encode(sha256(text.encode()).digest()).decode('ascii')}"
