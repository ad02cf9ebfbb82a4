"""Remarks on a run, beside its outputs: where a device would behave differently.

A step records a remark without knowing its instruction; the machine, which knows it, files the
remark under the instruction's source line. Repeated remarks on a line are counted.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from nkic.base.diagnostics import Diagnostic, Label, Level, make
from nkic.base.text import grouped, plural
from nkic.neff.places import source_of
from nkic.neff.records import Executable
from nkic.simulate.faults import called_from


class Remark(NamedTuple):
    """A remark on one execution of an instruction; `text` is on the first of `things`."""

    slug: str
    text: str
    help: str
    things: int = 1
    level: Level = Level.REMARK
    other: int = -1  # a second place, with `label`
    label: str = ""


@dataclass
class _Sum:
    """All remarks of one kind on one line."""

    first: Remark
    place: int
    count: int = 0
    times: int = 0


@dataclass
class Remarks:
    """The remarks on one kernel's run. `fresh` are those of the current step."""

    fresh: list[Remark] = field(default_factory=list)
    _sums: dict[tuple[str, object], _Sum] = field(default_factory=dict)
    _lines: dict[int, object] = field(default_factory=dict)  # by place

    def add(self, remark: Remark) -> None:
        """Record a remark of the current step."""
        self.fresh.append(remark)

    def drop(self, slugs: Collection[str]) -> None:
        """Drop remarks of these kinds on the current step."""
        self.fresh[:] = [remark for remark in self.fresh if remark.slug not in slugs]

    def settle(self, executable: Executable, place: int) -> None:
        """File the remarks of the step that has run under the instruction at `place`."""
        line = self._lines.get(place)
        if line is None:
            span = source_of(executable, place)
            line = self._lines[place] = (span.path, span.line) if span is not None else place
        for remark in self.fresh:
            total = self._sums.setdefault((remark.slug, line), _Sum(remark, place))
            total.count += remark.things
            total.times += 1
        self.fresh.clear()

    def has(self, slug: str) -> bool:
        """Return whether there is a remark of that kind."""
        return any(present == slug for present, _ in self._sums)

    def clear(self) -> None:
        """Reset to the state before the run; line lookups stay cached."""
        self.fresh.clear()
        self._sums.clear()

    def diagnostics(self, executable: Executable) -> list[Diagnostic]:
        """Return one diagnostic for each kind and line, in order of first occurrence."""
        return [_diagnostic(total, executable) for total in self._sums.values()]


def _diagnostic(remark_sum: _Sum, executable: Executable) -> Diagnostic:
    first, labels = remark_sum.first, called_from(executable, remark_sum.place)
    span = source_of(executable, first.other)
    if span is not None:
        labels.insert(0, Label(span, first.label))
    notes = []
    if remark_sum.times > 1:
        total = (
            f", {grouped(remark_sum.count)} in all" if remark_sum.count > remark_sum.times else ""
        )
        notes.append(f"{plural(remark_sum.times, 'execution')} of this line{total}")
    return make(
        first.slug,
        first.text,
        source_of(executable, remark_sum.place),
        labels=labels,
        notes=notes,
        help=first.help,
        level=first.level,
    )
