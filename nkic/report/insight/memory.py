"""Live ranges of tensors: from the first access to the end of the last one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nkic.machine.memory import Buffer
from nkic.report.insight.costs import Accounts
from nkic.report.insight.sources import Line


class LiveRange(NamedTuple):
    """The live range of a tensor on chip, from `start` to `end` (picoseconds).

    `bytes` counts all its partitions.
    """

    tensor: int
    name: str
    buffer: Buffer
    core: int
    line: Line
    start: int
    end: int
    bytes: int


class Peak(NamedTuple):
    """The maximum of bytes live at one time, the first time of it, and the owners.

    `owners` gives the bytes by name and declaring line, greatest first.
    """

    bytes: int
    time: int
    owners: tuple[tuple[str, Line, int], ...]


def live_ranges(accounts: Accounts) -> list[LiveRange]:
    """Return the live range of every tensor in SBUF and PSUM that was used, by start."""
    spans: dict[int, tuple[int, int]] = {}
    for event in accounts.trace.events:
        for use in accounts.uses_of(event):
            start, end = spans.get(use.tensor, (event.start, event.done))
            spans[use.tensor] = min(start, event.start), max(end, event.done)
    all_ranges = [_live_range(accounts, number, *span) for number, span in spans.items()]
    return sorted(
        (live_range for live_range in all_ranges if live_range.buffer.on_chip),
        key=lambda life: life[5:7],
    )


def _live_range(accounts: Accounts, number: int, start: int, end: int) -> LiveRange:
    tensor = accounts.trace.executable.tensors[number]
    partitions = tensor.shape[0] if tensor.shape else 1
    line = accounts.lines.of(tensor.place)
    size = tensor.bytes * partitions
    return LiveRange(number, tensor.name, tensor.buffer, tensor.core, line, start, end, size)


def levels(live_ranges: Iterable[LiveRange]) -> list[tuple[int, int]]:
    """Return the times at which the number of live bytes changes, each with the new number."""
    changes: dict[int, int] = defaultdict(int)
    for life in live_ranges:
        changes[life.start] += life.bytes
        changes[life.end] -= life.bytes
    level, series = 0, []
    for time in sorted(changes):
        level += changes[time]
        series.append((time, level))
    return series


def peak(live_ranges: Sequence[LiveRange], buffer: Buffer) -> Peak:
    """Return the peak of the live ranges in this memory."""
    live_ranges = [life for life in live_ranges if life.buffer is buffer]
    time, level = max(levels(live_ranges), key=lambda pair: (pair[1], -pair[0]), default=(0, 0))
    owners: dict[tuple[str, Line], int] = defaultdict(int)
    for life in live_ranges:
        if life.start <= time < life.end:
            owners[life.name, life.line] += life.bytes
    ranked = sorted(owners.items(), key=lambda pair: (-pair[1], pair[0]))
    return Peak(level, time, tuple((name, line, size) for (name, line), size in ranked))
