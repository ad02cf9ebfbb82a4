"""A picture of the points of a tuning: time across, bytes of SBUF upwards, and the front."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from math import floor, log10
from typing import NamedTuple

from nkic.base.text import clean, size
from nkic.report.allocation_picture import LETTERS, STYLE, WIDTH, rect, text

HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 480, 84, 24, 70, 52
TICKS = 5
# Status, words, and the class of its colour.
KINDS = (
    ("correct", "compared, and right", "c0"),
    ("compiled", "estimated alone", "c7"),
    ("", "wrong", "c5"),
)
MORE = ".front { fill: none; stroke: #3b5bdb; } .ring { fill: none; stroke: #2b8a3e; }\n"


class Dot(NamedTuple):
    """A point in the picture."""

    name: str
    status: str
    us: float
    sbuf_bytes: int
    on_front: bool
    best: bool

    @property
    def kind(self) -> int:
        """The number of its row in `KINDS`."""
        return next(n for n, kind in enumerate(KINDS) if kind[0] in (self.status, ""))


def svg(title: str, dots: Sequence[Dot]) -> str:
    """Return the picture, which follows the viewer's light or dark mode."""
    heading = escape(clean(title))
    most = max((dot.sbuf_bytes for dot in dots), default=0)
    unit = 1 << 10 * min(2, max(0, most.bit_length() - 1) // 10)  # the one that `size` takes
    time = _top(max((dot.us for dot in dots), default=0.0))
    plot = _Plot(time, _top(most / unit) * unit)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{heading}">',
        f"<style>{STYLE}{MORE}</style>",
        text(LEFT, 24, title),
        *_legend(),
        *plot.axes(),
        *plot.front([dot for dot in dots if dot.on_front]),
        *(part for dot in sorted(dots, key=lambda d: -d.kind) for part in plot.dot(dot)),
    ]
    return "\n".join([*parts, "</svg>\n"])


def _top(most: float) -> float:
    """Return the end of an axis: a round number, at or above the most."""
    scale = 10 ** floor(log10(most)) if most > 0 else 1.0
    return next(n * scale for n in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if n * scale >= most)


def _legend() -> Iterator[str]:
    left = float(LEFT)
    for _, words, colour in KINDS:
        yield f'<circle class="{colour}" cx="{left + 5:.1f}" cy="44" r="5"/>'
        yield text(left + 16, 48, words, "soft")
        left += 40 + LETTERS * len(words)
    yield f'<circle class="ring" cx="{left + 5:.1f}" cy="44" r="7" stroke-width="2"/>'
    yield text(left + 18, 48, "the best; line: none is both faster and smaller", "soft")


class _Plot(NamedTuple):
    """The area of the points: its last microsecond, and its last byte."""

    time: float
    bytes: float

    def x(self, us: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * us / self.time

    def y(self, count: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * count / self.bytes

    def axes(self) -> Iterator[str]:
        yield rect(LEFT, TOP, WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM, "frame")
        for tick in range(TICKS + 1):
            us, count = self.time * tick / TICKS, self.bytes * tick / TICKS
            x, y = f"{self.x(us):.1f}", f"{self.y(count):.1f}"
            lines = f"M{x},{TOP}V{HEIGHT - BOTTOM}M{LEFT},{y}H{WIDTH - RIGHT}"
            yield f'<path class="grid" d="{lines}"/>'
            yield text(self.x(us), HEIGHT - BOTTOM + 18, f"{us:,.4g}", "soft", "middle")
            yield text(LEFT - 8, self.y(count) + 4, size(round(count)), "soft", "end")
        yield text(WIDTH / 2, HEIGHT - 12, "time in us", "soft", "middle")
        yield text(LEFT - 8, TOP - 10, "SBUF", "soft", "end")

    def front(self, dots: Sequence[Dot]) -> Iterator[str]:
        ordered = sorted(dots, key=lambda dot: dot.us)
        places = [(self.x(d.us), self.y(d.sbuf_bytes)) for d in ordered]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        yield f'<polyline class="front" points="{points}"/>'

    def dot(self, dot: Dot) -> Iterator[str]:
        x, y = self.x(dot.us), self.y(dot.sbuf_bytes)
        about = f"{dot.name}: {dot.status}, {dot.us:,.2f} us, {size(dot.sbuf_bytes)}"
        colour = KINDS[dot.kind][2]
        yield (
            f'<circle class="{colour}" cx="{x:.1f}" cy="{y:.1f}" r="5">'
            f"<title>{escape(clean(about))}</title></circle>"
        )
        if dot.best:
            yield f'<circle class="ring" cx="{x:.1f}" cy="{y:.1f}" r="9" stroke-width="2"/>'
        if dot.on_front:
            is_right = x > WIDTH / 2  # there is room on the left, below the line
            anchor = "end" if is_right else "start"
            yield text(x - 10 if is_right else x + 10, y + 18, dot.name, "", anchor)
