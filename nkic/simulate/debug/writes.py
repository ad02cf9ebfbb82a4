"""Every write of a run, with its writer and its place in the source."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nkic.base.diagnostics import UsageFailed, make
from nkic.base.suggest import did_you_mean
from nkic.base.text import clean
from nkic.machine.targets import Target
from nkic.neff.places import iterations as unrolled
from nkic.neff.places import user_place
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
        self._known: dict[int, tuple[tuple[int, Region | None], ...]] = {}  # by the item's id
        self.lines: dict[str, set[int]] = defaultdict(set)  # lines that write a tensor, by its name
        self.tensors: dict[tuple[str, int], list[int]] = defaultdict(list)  # by name and line
        for runner in scene.runners:
            for item in runner.items:
                if isinstance(item, Item) and item.record.row is not None:
                    for number in written(scene.executable, scene.target, runner, item):
                        name = scene.executable.tensors[number].name
                        line = line_of(scene.executable, item.record.place)
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
        found = self._known.get(id(item))
        if found is None:
            regions = written(self.executable, self.target, runner, item)
            found = tuple((number, self._region(patterns)) for number, patterns in regions.items())
            self._known[id(item)] = found
        return found

    def _region(self, patterns: Sequence[PatternRecord]) -> Region | None:
        if any(pattern.dynamic is not None for pattern in patterns):
            return None
        boxes = [region_of(self.executable, pattern) for pattern in patterns]
        return tuple(
            (min(o[0] for o in one), max(o[1] for o in one)) for one in zip(*boxes, strict=True)
        )

    def check(self, option: str, name: str, line: int | None = None) -> None:
        """Raise `UsageFailed` for a tensor that is never written, or not by this line."""
        lines = sorted(self.lines.get(name, ()))
        if lines and (line is None or line in lines):
            return
        problem = f"line {line} does not write" if line is not None else "nothing writes"
        help = f"it is written in lines {', '.join(map(str, lines))}" if lines else ""
        help = help or did_you_mean(name, self.lines) or f"there are: {', '.join(self.lines)}"
        text = f"{option}: {problem} a tensor `{clean(name)}`"
        raise UsageFailed([make("bad-value", text, help=help)])

    def check_line(self, option: str, line: int) -> None:
        """Raise `UsageFailed` for a line that writes no tensor."""
        lines = sorted(set().union(*self.lines.values()))
        if line not in lines:
            nearest = sorted(lines, key=lambda one: (abs(one - line), one))[:3]
            text = f"{option}: no instruction of line {line} writes a tensor"
            help = f"the nearest lines that do: {', '.join(map(str, sorted(nearest)))}"
            raise UsageFailed([make("bad-value", text, help=help)])


def written(
    executable: Executable, target: Target, runner: Runner, item: Item
) -> dict[int, list[PatternRecord]]:
    """Return the tensors that an item writes, with the patterns."""
    record, row = item.record, item.record.row
    patterns: dict[int, list[PatternRecord]] = {}
    if row is None:
        return patterns
    facts = executable.facts(record, target, runner.record.engine)
    for rule, operand in zip(row.operands, record.operands, strict=False):
        if isinstance(operand, PatternRecord) and row.access_of(rule, facts).writes:
            patterns.setdefault(operand.tensor, []).append(operand)
    return patterns


def line_of(executable: Executable, place: int) -> int:
    """Return the user's line, or 0 if the file has none."""
    places = executable.places
    return places[user_place(executable, place)].line if 0 <= place < len(places) else 0


def path_of(executable: Executable, place: int) -> str:
    """Return the path of the file of this line."""
    places = executable.places
    if not 0 <= place < len(places):
        return ""
    return executable.files[places[user_place(executable, place)].file].path


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
