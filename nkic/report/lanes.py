"""The timeline as text: a lane for each engine and queue, time from left to right.

The height of a cell is the share of its time that the lane was busy. Below it, a letter under each
mostly idle cell gives the cause of waiting.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from nkic.artifact.events import Event
from nkic.base.source import SourceFile
from nkic.base.text import clean, grouped, size
from nkic.machine.targets import Engine, Target
from nkic.report import traces
from nkic.report.compare import Changes, plain
from nkic.report.costs import LineCost
from nkic.report.critical import Line, name_of
from nkic.report.run_report import RunReport, about, time_line
from nkic.report.verdict import Insight

# ---- The kernel's source with the costs of each line in the margin ------------------------------

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


# --------------------------------------------------------------------------------------------------

BLOCKS = " ▁▂▃▄▅▆▇█"
ASCII = " .:-=+*#@"
LETTERS = {
    "data": "d",
    "memory": "m",
    "order": "o",
    "bandwidth": "b",
    "table": "t",
    "trigger": "i",
    "access": "a",
    "rendezvous": "c",
    "other": "?",
}
ON_PATH = {
    Engine.TENSOR: "P",
    Engine.SCALAR: "A",
    Engine.VECTOR: "V",
    Engine.GPSIMD: "G",
    Engine.SYNC: "S",
    Engine.DMA: "D",
}
STYLES = {  # of lanes on a terminal, by the engine's short name
    **{"PE": "blue", "ACT": "yellow", "DVE": "green", "POOL": "magenta"},
    **{"SP": "white", "DMA": "red", "path": "bold"},
}


class Window(NamedTuple):
    """The time from `start` to `end` in picoseconds, divided into `cells` cells."""

    start: int
    end: int
    cells: int

    def shares(self, start: int, end: int) -> Iterable[tuple[int, float]]:
        """Yield the cells that a span overlaps, each with the overlapped share."""
        start, end = max(start, self.start), min(end, self.end)
        width = (self.end - self.start) / self.cells
        if end <= start:
            return
        first = int((start - self.start) / width)
        for cell in range(first, self.cells):
            low = self.start + cell * width
            if low >= end:
                break
            yield cell, max(0.0, min(end, low + width) - max(start, low)) / width


class Lane(NamedTuple):
    """A stream: per cell, the busy share and the main cause of waiting; its share of the window."""

    name: str
    busy: list[float]
    waits: list[str]
    share: float


def lanes(insight: Insight, window: Window) -> list[Lane]:
    """Return every stream that executed or triggered something."""
    by_stream: dict[int, list[Event]] = defaultdict(list)
    for event in insight.trace.events:
        if event.record.row is not None:
            by_stream[event.stream].append(event)
    triggers: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for trigger in traces.triggers(insight):
        triggers[trigger.track].append((trigger.start, trigger.end))
    return [
        _lane(insight, name, by_stream[stream], triggers[stream], window)
        for stream, name in traces.track_names(insight).items()
    ]


def _lane(
    insight: Insight,
    name: str,
    events: Sequence[Event],
    triggers: Sequence[tuple[int, int]],
    window: Window,
) -> Lane:
    busy = [0.0] * window.cells
    idle: list[dict[str, float]] = [defaultdict(float) for _ in busy]
    executed = [(event.start + event.table, event.free) for event in events]
    for start, end in (*executed, *triggers):
        for cell, share in window.shares(start, end):
            busy[cell] += share
    for event in events:
        for cause, start, end in _waits(insight, event):
            for cell, share in window.shares(start, end):
                idle[cell][cause] += share
    letters = [
        LETTERS.get(max(waits, key=lambda cause: waits[cause]), " ")
        if waits and share < 0.5
        else " "
        for share, waits in zip(busy, idle, strict=True)
    ]
    return Lane(name, busy, letters, sum(busy) / window.cells)


def _waits(insight: Insight, event: Event) -> Iterable[tuple[str, int, int]]:
    """Yield the idle intervals before an event, with their causes."""
    if event.ready > event.idle:
        yield insight.accounts.cause(event), event.idle, event.ready
    if event.start > event.ready:
        yield "bandwidth", event.ready, event.start
    if event.table:
        yield "table", event.start, event.start + event.table


def path_row(insight: Insight, window: Window) -> str:
    """Return the engine of the critical path, per cell."""
    times: list[dict[str, float]] = [defaultdict(float) for _ in range(window.cells)]
    for segment in insight.path:
        engine = insight.trace.streams[insight.trace.events[segment.event].stream].engine
        for cell, share in window.shares(segment.start, segment.end):
            times[cell][ON_PATH[engine]] += share
    return "".join(max(cell, key=lambda k: cell[k]) if cell else " " for cell in times)


def text(insight: Insight, width: int, blocks: str = BLOCKS, window: Window | None = None) -> str:
    """Return the lanes, `width` characters wide, of the whole run or of a window."""
    names = [name_of(insight.trace, stream) for stream in traces.streams(insight)]
    left = max([len("path"), *map(len, names)]) + 1
    cells = max(10, width - left - len("  100%"))
    start, end = (window.start, window.end) if window else (0, insight.trace.end)
    shown = Window(start, max(end, start + 1), cells)
    rows = [_axis(shown, left)]
    for lane in lanes(insight, shown):
        bars = "".join(blocks[_level(share, len(blocks))] for share in lane.busy)
        rows.append(f"{lane.name.ljust(left)}{bars} {100 * lane.share:4.0f}%")
        if any(letter != " " for letter in lane.waits):
            rows.append(" " * left + "".join(lane.waits).rstrip())
    rows.append(f"{'path'.ljust(left)}{path_row(insight, shown)}".rstrip())
    rows.append(LEGEND)
    return "\n".join(row.rstrip() for row in rows) + "\n"


def style_of(line: str) -> str:
    """Return the style of a row: its engine's colour; rows of waiting causes are dim."""
    words = line.split()
    if line[:1] == " " or not words:
        return "dim"
    name = words[2] if words[0] == "core" and len(words) > 2 else words[0]
    return STYLES.get(name, "")


LEGEND = (
    "height: busy; waiting for d data, m memory, o order, b bandwidth, t table, i trigger; "
    "path: P tensor, A scalar, V vector, G gpsimd, D dma"
)


def _level(share: float, levels: int) -> int:
    """Return the level of a share; only 0 maps to the lowest level, and only 1 to the highest."""
    if share <= 0:
        return 0
    return max(1, min(levels - 2, round(share * (levels - 1)))) if share < 0.9995 else levels - 1


def _axis(window: Window, left: int) -> str:
    first, last = (f"{time / 1_000_000:.2f} us" for time in (window.start, window.end))
    return " " * left + first + last.rjust(window.cells - len(first))


# ---- A run in a few lines of Markdown, for the summary of a job or a pull request ---------------


def markdown(
    insight: Insight, run: RunReport, compared: Changes | None = None, command: str = ""
) -> str:
    """Return the time, the verdict, the changes against a baseline, and how to repeat the run."""
    title = f"### {plain(run.kernel)}: {plain(time_line(run))}"
    rows = about(run, insight.trace.executable, command)
    points = [f"- {plain(line)}" for line in insight.verdict.lines]
    table = [f"| {name} | {plain(clean(value))} |" for name, value in rows]
    changed = [compared.markdown] if compared is not None else []
    return "\n".join([title, "", *points, "", *changed, "| run | |", "|---|---|", *table]) + "\n"
