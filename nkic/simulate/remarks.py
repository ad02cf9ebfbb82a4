"""What a run has to say beside its outputs: where a device would do otherwise.

A step notes what it meets without knowing which instruction it stands for; the machine, which
does, files it under that instruction's line. What comes again on a line is counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from nkic.base.diagnostics import Diagnostic, Label, Level, make
from nkic.base.text import grouped, plural
from nkic.neff.records import Executable
from nkic.simulate.faults import called_from, source_of


class Remark(NamedTuple):
    """What one execution of an instruction met, so many `things`; `text` tells the first."""

    slug: str
    text: str
    help: str
    things: int = 1
    level: Level = Level.REMARK
    other: int = -1  # a further place, and what to say there
    label: str = ""


@dataclass
class _Sum:
    """All of one line."""

    first: Remark
    place: int
    count: int = 0
    times: int = 0


@dataclass
class Remarks:
    """Those of one kernel's run. `fresh` are those of the step that is running."""

    fresh: list[Remark] = field(default_factory=list)
    _sums: dict[tuple[str, object], _Sum] = field(default_factory=dict)
    _lines: dict[int, object] = field(default_factory=dict)  # by place

    def add(self, remark: Remark) -> None:
        """Notes what the running step met."""
        self.fresh.append(remark)

    def settle(self, executable: Executable, place: int) -> None:
        """The step that has run is that of the instruction at `place`."""
        line = self._lines.get(place)
        if line is None:
            span = source_of(executable, place)
            line = self._lines[place] = (span.path, span.line) if span is not None else place
        for remark in self.fresh:
            known = self._sums.setdefault((remark.slug, line), _Sum(remark, place))
            known.count += remark.things
            known.times += 1
        self.fresh.clear()

    def has(self, slug: str) -> bool:
        """Whether there is one of that kind."""
        return any(known == slug for known, _ in self._sums)

    def clear(self) -> None:
        """As before the run. Lines stay known."""
        self.fresh.clear()
        self._sums.clear()

    def diagnostics(self, executable: Executable) -> list[Diagnostic]:
        """One for each kind and line, in the order in which they were met."""
        return [_diagnostic(one, executable) for one in self._sums.values()]


def _diagnostic(found: _Sum, executable: Executable) -> Diagnostic:
    first, labels = found.first, called_from(executable, found.place)
    span = source_of(executable, first.other)
    if span is not None:
        labels.insert(0, Label(span, first.label))
    notes = []
    if found.times > 1:
        total = f", {grouped(found.count)} in all" if found.count > found.times else ""
        notes.append(f"{plural(found.times, 'execution')} of this line{total}")
    return make(
        first.slug,
        first.text,
        source_of(executable, found.place),
        labels=labels,
        notes=notes,
        help=first.help,
        level=first.level,
    )
