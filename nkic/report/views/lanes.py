"""The timeline as text: a lane for each engine and queue, time from left to right.

The height of a cell is the share of its time that the lane was busy. Below it, a letter under each
mostly idle cell gives the cause of waiting.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nkic.machine.engines import Engine
from nkic.report.insight.sources import name_of
from nkic.report.insight.verdict import Insight
from nkic.report.views import tracks
from nkic.trace import Event

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
_ORDER = (*ON_PATH,)
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
    """A stream: per cell, the busy share and the main cause of waiting; and the busy share of the
    window.
    """

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
    for trigger in tracks.triggers(insight):
        triggers[trigger.track].append((trigger.start, trigger.end))
    streams = tracks.streams(insight)
    order = sorted(
        {*by_stream, *triggers},
        key=lambda s: (streams[s].core, _ORDER.index(streams[s].engine), streams[s].queue),
    )
    return [
        _lane(insight, name_of(insight.trace, streams[s]), by_stream[s], triggers[s], window)
        for s in order
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
    names = [name_of(insight.trace, stream) for stream in tracks.streams(insight)]
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
