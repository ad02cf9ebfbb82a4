"""The changes between two runs, as text and as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from nkic.base.text import aligned, clean
from nkic.report.compare.profiles import Cost, Key, Profile
from nkic.report.compare.ranking import Order, Timed, order

LINES = 20  # source lines and instructions that are shown


class Row(NamedTuple):
    """A figure before and after; None if it is missing."""

    name: str
    before: float | None
    after: float | None

    @property
    def change(self) -> float:
        return (self.after or 0) - (self.before or 0)

    @property
    def share(self) -> str:
        """The change relative to the value before."""
        if not self.before:
            return "new" if self.after else ""
        return f"{100 * self.change / self.before:+.1f}%"

    def cells(self) -> tuple[str, str, str, str]:
        """Return the cells of a table row."""
        change = f"{self.change:+,.0f} {self.share}" if self.change else "="
        return clean(self.name), _shown(self.before), _shown(self.after), change


def _shown(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


@dataclass(frozen=True)
class Changes:
    """The rows that differ, greatest change first; `figures` has all, in order.

    Times of lines are nanoseconds on the critical path; `moved` counts bytes from and to HBM.
    """

    before: Profile
    after: Profile
    figures: Sequence[Row]
    lines: Sequence[Row]
    moved: Sequence[Row]
    instructions: Sequence[Row]

    @property
    def order(self) -> Order | None:
        """Which run is faster, as far as that can be told; None of runs without a record of it."""
        first, second = (
            Timed(clean(p.kernel), p.figures["time_ns"], p.reasons)
            for p in (self.before, self.after)
        )
        return order(first, second) if first.reasons and second.reasons else None

    @property
    def headline(self) -> str:
        """Both runs in one line."""
        a, b = self.before, self.after
        same = "the same program" if a.id == b.id else "another program"
        return f"{clean(a.kernel)} on {clean(a.target)}, then {clean(b.kernel)} on " + (
            f"{clean(b.target)}: {same}"
        )

    def tables(self) -> Iterator[tuple[str, Sequence[Row]]]:
        """Yield the tables with their titles, cut to the rows that are shown."""
        yield "figure", self.figures
        yield "line, ns on the critical path", self.lines[:LINES]
        yield "line, bytes from and to HBM", self.moved[:LINES]
        yield "instructions", self.instructions[:LINES]

    @property
    def text(self) -> str:
        """The changes for a terminal."""
        parts = [self.headline + "\n", *([f"{self.order.words}\n"] if self.order else [])]
        for title, rows in self.tables():
            if rows:
                head = (title, "before", "after", "change")
                parts.append(aligned([head, *_cells(rows)], right=(1, 2, 3)))
        return "\n".join(parts)

    @property
    def markdown(self) -> str:
        """The changes for a pull request."""
        parts = [f"### {plain(self.headline)}\n"]
        parts += [f"{plain(self.order.words)}\n"] if self.order else []
        for title, rows in self.tables():
            if rows:
                head = f"| {title} | before | after | change |\n|---|--:|--:|--:|\n"
                lines = (f"| {' | '.join(map(plain, row))} |\n" for row in _cells(rows))
                parts.append(head + "".join(lines))
        return "\n".join(parts)

    def as_json(self) -> dict[str, Any]:
        """Return the changes for programs."""
        tables = ("figures", "lines", "moved", "instructions")
        tables_json = {name: [row._asdict() for row in getattr(self, name)] for name in tables}
        identity = ("kernel", "target", "id")
        profiles = {"before": asdict(self.before), "after": asdict(self.after)}
        return (
            {"schema": 1, "order": self.order._asdict() if self.order else None}
            | {k: {n: v[n] for n in identity} for k, v in profiles.items()}
            | tables_json
        )


_ESCAPES = {ord(c): f"\\{c}" for c in "\\*_{}[]#"} | {ord(c): f"&#{ord(c)};" for c in "<>&|`"}


def plain(text: str) -> str:
    """Escape text for Markdown and HTML."""
    return text.translate(_ESCAPES)


def _cells(rows: Sequence[Row]) -> list[tuple[str, str, str, str]]:
    return [row.cells() for row in rows]


def changes(before: Profile, after: Profile) -> Changes:
    """Compare two runs; source lines are matched by their text."""
    figures = [Row(name, before.figures[name], value) for name, value in after.figures.items()]
    mix = _differing(before.instructions, after.instructions, str, lambda value: value)
    return Changes(
        before,
        after,
        figures,
        _differing(before.lines, after.lines, _named(after, before), lambda c: c.critical_ns),
        _differing(before.lines, after.lines, _named(after, before), lambda c: c.hbm_bytes),
        mix,
    )


def _named(after: Profile, before: Profile) -> Callable[[Key], str]:
    def name(key: Key) -> str:
        cost: Cost = after.lines.get(key) or before.lines[key]
        return cost.place if key.path else f"{cost.place} {key.line[:60]}"

    return name


def _differing(before: Any, after: Any, name: Any, value: Callable[[Any], float]) -> list[Row]:
    rows = [
        Row(
            name(key),
            value(before[key]) if key in before else None,
            value(after[key]) if key in after else None,
        )
        for key in dict.fromkeys((*before, *after))
    ]
    return sorted((r for r in rows if r.change), key=lambda row: (-abs(row.change), row.name))
