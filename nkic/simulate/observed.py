"""Observers of a run: what they are told, and of what."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from operator import mul
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nkic.artifact.records import (
    Executable,
    InstructionRecord,
    PatternRecord,
    StreamRecord,
    TensorRecord,
    source_of,
)
from nkic.artifact.records import iterations as unrolled
from nkic.base.diagnostics import bad_value, suggestion
from nkic.base.text import clean
from nkic.machine.targets import Target
from nkic.simulate.machine import Machine
from nkic.simulate.memory import Memory
from nkic.simulate.shadow import Mask, Shadow
from nkic.simulate.streams import Hook, Item, Runner
from nkic.simulate.tile import Tile

# ---- The tensors of a program by name, with their current contents ------------------------------

Stored = NDArray[np.generic]  # in the storage type of the element type


class Tensors:
    """The tensors of one rank, by number and by name.

    Several may share a name, as an unrolled loop makes one per iteration. `shadow` tells which
    bytes are initialised, if they are tracked.
    """

    def __init__(
        self, executable: Executable, memory: Memory, shadow: Shadow | None, precise: bool
    ) -> None:
        self.executable, self.memory, self.shadow = executable, memory, shadow
        self.precise = precise
        self.named: dict[str, list[int]] = defaultdict(list)
        for number, tensor in enumerate(executable.tensors):
            self.named[tensor.name].append(number)
        self._tiles: dict[int, Tile] = {}

    def record(self, number: int) -> TensorRecord:
        return self.executable.tensors[number]

    def contents(self, number: int) -> Stored:
        tensor = self.record(number)
        if not tensor.buffer.on_chip:
            return np.array(self.memory.contents_of(number, self.precise))
        if number not in self._tiles:
            pattern = whole(number, tensor)
            self._tiles[number] = Tile(self.memory, pattern, self.precise).bound()
        return np.array(self._tiles[number].bits()).reshape(tensor.shape)

    def written(self, number: int) -> Mask:
        tensor, shadow = self.record(number), self.shadow
        is_noted = tensor.buffer.on_chip or (shadow is not None and shadow.is_noted(number))
        if shadow is None or not shadow.is_accessed(number) or not is_noted:
            return np.ones(tensor.shape, np.bool_)
        return shadow.flags[number].whole(tensor.dtype.size).reshape(tensor.shape)


def whole(number: int, tensor: TensorRecord) -> PatternRecord:
    sizes = tensor.shape[1:] or (1,)
    steps = [*accumulate(reversed(sizes[1:]), mul, initial=1)][::-1]
    dims = tuple(zip(steps, sizes, strict=True))
    return PatternRecord(number, tensor.dtype, 0, tensor.shape[0], 0, dims)


# ---- Tensors, or parts of them, as users write them: `NAME[0:4, 2]` -----------------------------

_PART = re.compile(r"([^\[\]]+?)\s*(?:\[([^\[\]]*)\])?")
_AXIS = re.compile(r"(-?\d{1,9})?(?:(:)(-?\d{1,9})?)?")


class Part(NamedTuple):
    """A part of a tensor: `axes` has an index, or a start and an end, for each dimension given."""

    text: str
    name: str
    axes: tuple[int | tuple[int | None, int | None], ...]

    def of(self, array: Stored) -> Stored:
        index = tuple(slice(*axis) if isinstance(axis, tuple) else axis for axis in self.axes)
        selected: Stored = array[index]
        return selected if selected.ndim else selected.reshape(1)

    def check(self, shape: tuple[int, ...]) -> None:
        """Raise `UsageFailed` if an array of that shape has no such part."""
        if len(self.axes) > len(shape):
            self._refuse(f"`{clean(self.name)}` has {len(shape)} dimensions: {shape}")
        for axis, (size, index) in enumerate(zip(shape, self.axes, strict=False)):
            if isinstance(index, int) and not -size <= index < size:
                self._refuse(
                    f"index {index} is outside axis {axis} of `{clean(self.name)}`: {shape}"
                )
            if isinstance(index, tuple) and not range(*slice(*index).indices(size)):
                self._refuse(
                    f"axis {axis} of `{clean(self.name)}` has {size} elements: none is left"
                )

    def _refuse(self, problem: str) -> None:
        help = f"choose an existing part, or the whole tensor with `{clean(self.name)}`"
        raise bad_value(f"{clean(self.text)}: {problem}", help)


def part(text: str) -> Part:
    """Parse a user's text. Raises `UsageFailed`."""
    match = _PART.fullmatch(text.strip())
    axis_texts = match[2].split(",") if match is not None and match[2] else []
    matches = [_AXIS.fullmatch(word.strip()) for word in axis_texts]
    if match is None or any(axis is None or not axis[0] for axis in matches):
        raise bad_value(
            f"`{clean(text)}` names no tensor", "for example acc, acc[0], or acc[0:4, 2]"
        )
    axes = [(_number(m[1]), _number(m[3])) if m[2] else int(m[1]) for m in matches if m is not None]
    return Part(text, match[1].strip(), tuple(axes))


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


# --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Scene:
    """One rank of an observed run."""

    rank: int
    executable: Executable
    target: Target
    runners: Sequence[Runner]
    tensors: Tensors
    machine: Machine

    @cached_property
    def writes(self) -> Writes:
        return Writes(self)

    def instructions(self) -> Iterator[tuple[Runner, Item]]:
        for runner in self.runners:
            for item in runner.items:
                if isinstance(item, Item) and item.record.row is not None:
                    yield runner, item


class Execution(NamedTuple):
    """An execution of an item: its start and, known afterwards, its completion, in picoseconds."""

    scene: Scene
    runner: Runner
    item: Item
    start: int
    done: int = 0


class Observer:
    """Callbacks of a run; each of them does nothing unless it is overridden."""

    def begin(self, scene: Scene) -> None:
        """Called before a rank runs. Raises `UsageFailed` for an invalid request."""

    def before(self, execution: Execution) -> None:
        """Called before the item is executed.

        At a rendezvous, values are exchanged before this is called for any of its items.
        """

    def after(self, execution: Execution) -> None:
        """Called after the item's values have been computed."""

    def end(self) -> None:
        """Called at the end of the run."""


class Observed(Hook):
    def __init__(self, scene: Scene, observers: Sequence[Observer]) -> None:
        self.scene, self.observers = scene, observers

    def begin(self, runner: Runner, item: Item, start: int) -> None:
        for observer in self.observers:
            observer.before(Execution(self.scene, runner, item, start))

    def end(self, runner: Runner, item: Item, start: int) -> None:
        begun = runner.moved - item.timing.hold if runner.is_dma else start
        for observer in self.observers:
            observer.after(Execution(self.scene, runner, item, begun, runner.done))


# ---- Every write of a run, with its writer and its place in the source --------------------------

_ITERATION = re.compile(r"=(-?\d{1,18})")
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
    if region is None:
        return "[at run-time offsets]"
    return f"[{', '.join(f'{low}:{high}' for low, high in region)}]"
