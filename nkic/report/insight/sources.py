"""Events by the user's source line."""

from __future__ import annotations

from typing import NamedTuple

from nkic.base.text import clean
from nkic.machine.engines import SHORT_NAMES, Engine
from nkic.neff.places import span_of, user_place
from nkic.neff.records import Executable, StreamRecord
from nkic.trace import Trace


class Line(NamedTuple):
    """A source line; number 0 if the file does not tell it."""

    path: str
    number: int

    def __str__(self) -> str:
        return f"{clean(self.path)}:{self.number}" if self.number else "synchronisation"

    @property
    def short(self) -> str:
        """The line without folders."""
        return f"{clean(self.path).rpartition('/')[2]}:{self.number}" if self.number else str(self)


UNKNOWN = Line("", 0)


class Lines:
    """The source lines of places: the user's line, and the line in nkic's library, if any."""

    def __init__(self, executable: Executable) -> None:
        self.executable = executable
        self._known: dict[int, Line] = {}
        self._inner: dict[int, Line | None] = {}

    def of(self, place: int) -> Line:
        """Return the innermost line that the user wrote."""
        line = self._known.get(place)
        if line is None:
            line = self._known[place] = self._at(user_place(self.executable, place))
        return line

    def inner(self, place: int) -> Line | None:
        """Return the line inside nkic's library if `place` is there; else None."""
        if place not in self._inner:
            is_inner = user_place(self.executable, place) != place
            self._inner[place] = self._at(place) if is_inner else None
        return self._inner[place]

    def _at(self, place: int) -> Line:
        span = span_of(self.executable, place)
        return Line(span.path, span.line) if span is not None else UNKNOWN


def name_of(trace: Trace, record: StreamRecord) -> str:
    """Return `PE` or `DMA 3`, with the core if there are several."""
    name = SHORT_NAMES[record.engine]
    name += f" {record.queue}" if record.engine is Engine.DMA else ""
    return f"core {record.core} {name}" if trace.executable.cores > 1 else name
