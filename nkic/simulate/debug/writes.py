"""Every write of a run, with its writer and its place in the source."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nkic.base.diagnostics import bad_value
from nkic.base.suggest import suggestion
from nkic.base.text import clean
from nkic.machine.targets import Target
from nkic.neff.places import iterations as unrolled
from nkic.neff.places import source_of
from nkic.neff.records import Executable, InstructionRecord, PatternRecord, StreamRecord
from nkic.simulate.debug.observed import Execution, Scene
from nkic.simulate.streams import Item, Runner

_ITERATION = re.compile(r"=(-?\d+)")
Region = tuple[tuple[int, int], ...]  # start and end, by dimension


class Write(NamedTuple):
    """A write of a tensor by an item.

    `region` is the box of what was written, or None at run-time offsets. `iterations` are those of
    the device loops around it; `unrolled` are those of the Python loops that made it, as "i=3 j=0",
    if the file has them.
    """

    rank: int
    stream: StreamRecord
    record: InstructionRecord
    tensor: int
    name: str
    line: int
    region: Region | None
    iterations: tuple[int, ...]
    unrolled: str
    start: int
    done: int

    @property
    def key(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """A key that sorts the writes of a line into program order.

        Streams run unrolled iterations in any order that the data allow.
        """
        return tuple(
            int(iteration) for iteration in _ITERATION.findall(self.unrolled)
        ), self.iterations


class Writes:
    """The writes of one rank."""

    def __init__(self, scene: Scene) -> None:
        self.executable = scene.executable
        self.target = scene.target
        self._regions: dict[int, tuple[tuple[int, Region | None], ...]] = {}  # by the item's id
        self.lines: dict[str, set[int]] = defaultdict(set)  # lines that write a tensor, by its name
        self.tensors: dict[tuple[str, int], list[int]] = defaultdict(list)  # by name and line
        for runner, item in scene.instructions():
            line = line_of(scene.executable, item.record.place)
            for number in written(scene.executable, scene.target, runner, item):
                name = scene.executable.tensors[number].name
                self.lines[name].add(line)
                self.tensors[name, line].append(number)

    def of(self, execution: Execution) -> Iterator[Write]:
        """Yield the writes of an item that has run."""
        scene, runner, item, start, done = execution
        line = line_of(self.executable, item.record.place)
        for number, region in self._of(runner, item):
            name, iterations = self.executable.tensors[number].name, tuple(runner.iterations)
            yield Write(
                *(scene.rank, runner.record, item.record, number, name, line),
                *(region, iterations, unrolled(self.executable, item.record), start, done),
            )

    def _of(self, runner: Runner, item: Item) -> tuple[tuple[int, Region | None], ...]:
        if id(item) not in self._regions:
            patterns = written(self.executable, self.target, runner, item)
            self._regions[id(item)] = tuple((n, self._region(p)) for n, p in patterns.items())
        return self._regions[id(item)]

    def _region(self, patterns: Sequence[PatternRecord]) -> Region | None:
        if any(pattern.dynamic is not None for pattern in patterns):
            return None
        boxes = [region_of(self.executable, pattern) for pattern in patterns]
        return tuple(
            (min(start for start, _ in spans), max(end for _, end in spans))
            for spans in zip(*boxes, strict=True)
        )

    def check(self, option: str, name: str, line: int | None = None) -> None:
        """Raise `UsageFailed` for a tensor that is never written, or not by this line."""
        lines = sorted(self.lines.get(name, ()))
        if lines and (line is None or line in lines):
            return
        problem = f"line {line} does not write" if line is not None else "nothing writes"
        help = f"it is written in lines {', '.join(map(str, lines))}" if lines else ""
        text = f"{option}: {problem} a tensor `{clean(name)}`"
        raise bad_value(text, help or suggestion(name, self.lines, "there are"))

    def check_line(self, option: str, line: int) -> None:
        """Raise `UsageFailed` for a line that writes no tensor."""
        lines = set[int]().union(*self.lines.values())
        if line not in lines:
            text = f"{option}: no instruction of line {line} writes a tensor"
            raise bad_value(text, f"the nearest lines that do: {nearest_lines(line, lines)}")


def written(
    executable: Executable, target: Target, runner: Runner, item: Item
) -> dict[int, list[PatternRecord]]:
    """Return the tensors that an item writes, with the patterns."""
    patterns: dict[int, list[PatternRecord]] = {}
    for pattern in executable.written(item.record, target, runner.record.engine).values():
        patterns.setdefault(pattern.tensor, []).append(pattern)
    return patterns


def nearest_lines(line: int, lines: Collection[int]) -> str:
    """Return the three of `lines` that are nearest to `line`, in ascending order: `3, 4, 7`."""
    nearest = sorted(sorted(lines), key=lambda candidate: abs(candidate - line))[:3]
    return ", ".join(map(str, sorted(nearest)))


def line_of(executable: Executable, place: int) -> int:
    """Return the user's line, or 0 if the file has none."""
    span = source_of(executable, place)
    return span.line if span is not None else 0


def path_of(executable: Executable, place: int) -> str:
    """Return the path of the file of the user's line, or "" if the file has none."""
    span = source_of(executable, place)
    return span.path if span is not None else ""


def region_of(executable: Executable, pattern: PatternRecord) -> Region:
    """Return the smallest box of indices that contains a fixed access."""
    tensor = executable.tensors[pattern.tensor]
    on_chip = tensor.buffer.on_chip
    sizes = (tensor.shape[1:] if on_chip else tensor.shape) or (1,)
    flat = np.array([pattern.offset])
    for step, count in pattern.dims:
        flat = np.unique(flat[:, None] + step * np.arange(count))
    elements = flat * pattern.dtype.size // tensor.dtype.size
    last = (flat * pattern.dtype.size + pattern.dtype.size - 1) // tensor.dtype.size
    places = np.unravel_index(np.concatenate([elements, last]), sizes)
    free = tuple((int(p.min()), int(p.max()) + 1) for p in places)
    if not on_chip:
        return free
    return ((pattern.start, pattern.start + pattern.partitions), *free)[: len(tensor.shape)]


def region_text(region: Region | None) -> str:
    """Format a region as `[0:128, 0:64]`."""
    if region is None:
        return "[at run-time offsets]"
    return f"[{', '.join(f'{low}:{high}' for low, high in region)}]"
