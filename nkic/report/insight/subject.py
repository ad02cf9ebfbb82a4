"""A run that questions are asked about, and what they have in common."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from nkic.machine.engines import Engine
from nkic.machine.timing import Timing
from nkic.neff.records import PatternRecord
from nkic.report.insight.costs import HBM, Accounts
from nkic.report.insight.critical import Segment
from nkic.report.insight.memory import LiveRange
from nkic.report.insight.sources import Line
from nkic.trace import Change, Event

FREE = Timing(0, 0)


@dataclass(frozen=True)
class Question:
    """A hypothetical change. `name` is for programs, `text` for people: the advice, or what would
    be free.

    `weight` is the part of the critical path that it concerns, in picoseconds. The answer is valid
    only if the run with `given` takes as long as the original. `code` is the related compiler
    warning. `estimated`: the run is not that of the kernel with the advice, but an approximation.
    `adds` are keywords to add to the line's call, if that is all.
    """

    name: str
    text: str
    change: Change
    is_advice: bool
    weight: int
    line: Line | None = None
    given: Change | None = None
    code: str = ""
    estimated: bool = False
    adds: str = ""


def timed_change(events: Mapping[int, Timing]) -> Change:
    """Return a change that gives these events other timings."""
    return Change(retimed=lambda number, event, original: events.get(number, original))


class Subject:
    """A recorded run with its critical path, costs and memory."""

    def __init__(
        self, accounts: Accounts, path: list[Segment], live_ranges: list[LiveRange]
    ) -> None:
        self.accounts = accounts
        self.trace = accounts.trace
        self.path = path
        self.live_ranges = live_ranges
        self._iterations: dict[int, dict[str, int]] = {}
        self.critical: dict[int, int] = defaultdict(int)
        for segment in path:
            self.critical[segment.event] += segment.time

    def weight(self, events: Iterable[int]) -> int:
        """Return the part of the critical path that these events take."""
        return sum(self.critical.get(number, 0) for number in events)

    def timed(
        self,
        name: str,
        text: str,
        events: Mapping[int, Timing],
        line: Line,
        *,
        estimated: bool = False,
    ) -> Question:
        """Return advice under which these events take other times."""
        change, weight = timed_change(events), self.weight(events)
        return Question(name, text, change, True, weight, line, estimated=estimated)

    def transfers(self) -> Iterator[tuple[int, Event]]:
        """Yield the events that move data."""
        for number, event in enumerate(self.trace.events):
            if event.record.row is not None and self.engine(event) is Engine.DMA:
                yield number, event

    def engine(self, event: Event) -> Engine:
        """Return the engine that executed the event."""
        return self.trace.streams[event.stream].engine

    def line(self, event: Event) -> Line:
        """Return the user's line of the event."""
        return self.accounts.lines.of(event.record.place)

    def loaded(self, event: Event) -> PatternRecord | None:
        """Return the part of an input that a transfer loads on chip; None for other transfers."""
        tensors = self.trace.executable.tensors
        reads = [u for u in self.accounts.uses_of(event) if u.reads]
        if len(reads) != 1 or reads[0].pattern.dynamic is not None:
            return None
        tensor = tensors[reads[0].tensor]
        is_input = tensor.buffer in HBM and tensor.role in ("input", "constant")
        return reads[0].pattern if is_input else None

    def iterations(self, event: Event) -> dict[str, int]:
        """Return the iterations of the Python loops that made the event, outermost first."""
        index = event.record.iterations
        if index not in self._iterations:
            text = self.trace.executable.iterations[index] if index >= 0 else ""
            pairs = (part.partition("=") for part in text.split())
            self._iterations[index] = {
                name: int(value) for name, _, value in pairs if value.lstrip("-").isdigit()
            }
        return self._iterations[index]


def bytes_of(pattern: PatternRecord) -> int:
    """Return the bytes of all the pattern's elements."""
    return pattern.elements * pattern.dtype.size
