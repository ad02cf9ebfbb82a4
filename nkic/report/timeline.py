"""The timeline of a run as a picture: a lane for each engine and queue, time from left to right.

It is one SVG without scripts or references. Bars less than half a pixel apart are merged, so that
its size does not grow with the run; a tooltip names the contents of a bar.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from math import floor, log10
from typing import NamedTuple

from nkic.base.text import clean

WIDTH, LEFT, RIGHT = 960.0, 96.0, 16.0  # of the picture, left of the lanes, right of them
TOP, LANE, GAP, BOTTOM = 28.0, 14.0, 4.0, 24.0
_MERGE_DISTANCE = 0.5  # pixels between bars that are merged
_MIN_WIDTH = 0.75  # minimum width of a bar
_TICKS = 8  # maximum number of time marks
_COLOURS = {  # in the order of the lanes
    "tensor": "#4269d0",
    "scalar": "#efb118",
    "vector": "#3ca951",
    "gpsimd": "#a463f2",
    "sync": "#9498a0",
    "dma": "#ff725c",
}
_STYLE = "font-family='sans-serif' font-size='11' fill='#444'"


class Stretch(NamedTuple):
    """The time that an instruction held its engine, or that a transfer was in flight.

    `lane` is "core0.vector" or "core0.dma3", `place` is "kernel.py:12".
    """

    lane: str
    start_ns: float
    end_ns: float
    name: str
    place: str = ""


class _Bar(NamedTuple):
    """Merged spans: their number, and the first of them."""

    start_ns: float
    end_ns: float
    many: int
    first: Stretch


def svg(spans: Sequence[Stretch], total_ns: float, title: str) -> str:
    lanes: dict[str, list[Stretch]] = {}
    for span in spans:
        lanes.setdefault(span.lane, []).append(span)
    height = TOP + len(lanes) * (LANE + GAP) + BOTTOM
    scale = (WIDTH - LEFT - RIGHT) / (total_ns or 1.0)
    cores = len({lane.partition(".")[0] for lane in lanes})
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH:g} {height:g}' "
        f"width='{WIDTH:g}' height='{height:g}' role='img'>",
        f"<title>{_text(title)}</title>",
        f"<rect width='{WIDTH:g}' height='{height:g}' fill='#fff'/>",
        f"<text x='{LEFT:g}' y='16' {_STYLE}>{_text(title)}</text>",
        *_axis(total_ns, scale, height),
    ]
    for number, lane in enumerate(sorted(lanes, key=_rank)):
        parts += _lane(lane, lanes[lane], TOP + number * (LANE + GAP), scale, cores > 1)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _text(text: str) -> str:
    return escape(clean(text))


def _rank(lane: str) -> tuple[str, int, str]:
    core, _, name = lane.partition(".")
    return core, [*_COLOURS].index(_engine(lane)), name


def _engine(lane: str) -> str:
    return lane.partition(".")[2].rstrip("0123456789")


def _lane(
    lane: str, spans: Sequence[Stretch], y: float, scale: float, whole: bool
) -> Iterator[str]:
    shown = lane if whole else lane.partition(".")[2]
    middle, colour = y + LANE - 3, _COLOURS[_engine(lane)]
    yield f"<text x='{LEFT - 8:g}' y='{middle:g}' text-anchor='end' {_STYLE}>{_text(shown)}</text>"
    yield f"<rect x='{LEFT:g}' y='{y:g}' width='{WIDTH - LEFT - RIGHT:g}' height='{LANE:g}' "
    yield "fill='#f3f3f3'/>"
    for bar in _bars(spans, _MERGE_DISTANCE / scale):
        width = max((bar.end_ns - bar.start_ns) * scale, _MIN_WIDTH)
        yield (
            f"<rect x='{LEFT + bar.start_ns * scale:.2f}' y='{y:g}' width='{width:.2f}' "
            f"height='{LANE:g}' fill='{colour}'><title>{_text(_told(bar))}</title></rect>"
        )


def _bars(spans: Sequence[Stretch], near_ns: float) -> Iterator[_Bar]:
    """Yield the spans in order of their starts, merging those that nearly touch."""
    bar: _Bar | None = None
    for span in spans:
        if bar is not None and span.start_ns - bar.end_ns <= near_ns:
            bar = bar._replace(end_ns=max(bar.end_ns, span.end_ns), many=bar.many + 1)
            continue
        if bar is not None:
            yield bar
        bar = _Bar(span.start_ns, span.end_ns, 1, span)
    if bar is not None:
        yield bar


def _told(bar: _Bar) -> str:
    text = f"{bar.first.name} {bar.first.place}".rstrip()
    if bar.many > 1:
        text = f"{bar.many:,} instructions, the first is {text}"
    return f"{text}: {bar.start_ns / 1000:.3f} to {bar.end_ns / 1000:.3f} us"


def _axis(total_ns: float, scale: float, height: float) -> Iterator[str]:
    """Draw time marks below the lanes."""
    step = _step(total_ns / 1000)
    foot = height - BOTTOM
    for number in range(int(total_ns / 1000 / step) + 1):
        x = LEFT + number * step * 1000 * scale
        yield (
            f"<line x1='{x:.2f}' y1='{TOP - 4:g}' x2='{x:.2f}' y2='{foot + 2:g}' stroke='#ddd'/>"
            f"<text x='{x:.2f}' y='{foot + 16:g}' text-anchor='middle' {_STYLE}>"
            f"{number * step:g} us</text>"
        )


def _step(total_us: float) -> float:
    """Return a round number of microseconds between marks."""
    if total_us <= 0:
        return 1.0
    power = 10.0 ** floor(log10(total_us / _TICKS))
    return next(power * n for n in (1, 2, 5, 10) if power * n * _TICKS >= total_us)
