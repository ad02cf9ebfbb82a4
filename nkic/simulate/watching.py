"""The text of a stop: the instruction, engines, queues, tensors and memory."""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np

from nkic.artifact.records import InstructionRecord, PatternRecord, TensorRecord
from nkic.base.diagnostics import LimitHit, bad_value, make, suggestion
from nkic.base.text import clean, grouped, plural, size, whole_number
from nkic.machine.dtypes import DType
from nkic.machine.targets import MEMORIES
from nkic.simulate.compare import Stats, stats_of
from nkic.simulate.inputs import numbers
from nkic.simulate.observed import (
    Execution,
    Observer,
    Part,
    Scene,
    Stored,
    Write,
    line_of,
    nearest_lines,
    part,
    path_of,
    region_of,
    region_text,
)
from nkic.simulate.streams import Item, Runner

# ------------------------------------------------------------------------------------------------
# Breakpoints: stops before an instruction of a line, with access to the complete state.

_PLACE = re.compile(r"(?:(.+?):)?(\d{1,9})(?::(\d{1,9}))?")


class Quit(Exception):
    """The user ends the run."""


class Breakpoint(NamedTuple):
    """An instruction of `line`, in the file whose path ends in `path`.

    With `time`, only the time-th instruction of the line to be executed.
    """

    path: str
    line: int
    time: int | None = None

    def __str__(self) -> str:
        time = f":{self.time}" if self.time is not None else ""
        return f"{self.path}:{self.line}{time}" if self.path else f"{self.line}{time}"


def breakpoint_of(text: str) -> Breakpoint:
    """Parse `FILE:LINE`, `LINE` or `FILE:LINE:TIME`. Raises `UsageFailed`."""
    match = _PLACE.fullmatch(text.strip())
    if match is None or match[3] == "0":
        help = "for example kernel.py:12, 12, or kernel.py:12:3 for its third instruction to run"
        raise bad_value(f"`{clean(text)}` is not a breakpoint", help)
    line = whole_number(match[1] or "")
    if line is not None and match[3] is None:
        return Breakpoint("", line, int(match[2]))  # LINE:TIME
    return Breakpoint(match[1] or "", int(match[2]), int(match[3]) if match[3] else None)


class Resume(Enum):
    """Where to stop next, besides breakpoints."""

    ON = "nowhere"
    STEP = "before the next instruction"
    NEXT = "before the next instruction of another line"


class Transfer(NamedTuple):
    item: Item
    start: int
    done: int


class Debugger(Observer):
    """Stops at `points`; `talk` is called with `stop` set, and calls `go` to continue.

    `written` has the last writes by rank and tensor, `under_way` the transfers of every queue that
    were in flight when the next one started.
    """

    def __init__(self, points: list[Breakpoint], talk: Callable[[Debugger], object]) -> None:
        self.points, self.talk = points, talk
        self.stop: Execution | None = None
        self.point: Breakpoint | None = None  # the one it has stopped at
        self.scenes: list[Scene] = []
        self.written: dict[tuple[int, int], Write] = {}
        self.under_way: dict[int, deque[Transfer]] = defaultdict(deque)
        self.times: dict[tuple[str, int], int] = defaultdict(int)  # instructions started, by line
        self._resume = Resume.ON
        self._stops_left = 0
        self._line = 0

    def begin(self, scene: Scene) -> None:
        """Raise `UsageFailed` for a breakpoint at a line without instructions."""
        self.scenes.append(scene)
        for point in self.points:
            self.check("--break", point)

    def check(self, option: str, point: Breakpoint) -> None:
        lines = self._lines_of_files()
        paths = [path for path in lines if _is_path(path, point.path)]
        subject = f"{option} {clean(str(point))}"
        if not paths:
            help = suggestion(point.path, lines, "there are")
            raise bad_value(f"{subject}: no file `{clean(point.path)}`", help)
        lines_with_code = set[int]().union(*(lines[path] for path in paths))
        if point.line not in lines_with_code:
            help = f"the nearest lines with one: {nearest_lines(point.line, lines_with_code)}"
            raise bad_value(f"{subject}: this line has no instruction", help)

    def _lines_of_files(self) -> dict[str, set[int]]:
        lines: dict[str, set[int]] = defaultdict(set)
        executable = self.scenes[0].executable
        for _, item in self.scenes[0].instructions():
            place = item.record.place
            lines[path_of(executable, place)].add(line_of(executable, place))
        return lines

    def go(self, resume: Resume, count: int = 1) -> None:
        """Continue after this stop, until `resume` has been reached `count` times."""
        self._resume, self._stops_left = resume, count

    def before(self, execution: Execution) -> None:
        """Stop here if a breakpoint or step requests it."""
        scene, _, item, _, _ = execution
        if item.record.row is None:
            return
        line = line_of(scene.executable, item.record.place)
        path = path_of(scene.executable, item.record.place)
        self.times[path, line] += 1
        self.point = self._point(path, line)
        if self.point is not None or self._is_step(line):
            self.stop, self._line = execution, line
            self._resume = Resume.ON
            self.talk(self)

    def _point(self, path: str, line: int) -> Breakpoint | None:
        time = self.times[path, line]
        for point in self.points:
            if point.line == line and _is_path(path, point.path) and point.time in (None, time):
                return point
        return None

    def _is_step(self, line: int) -> bool:
        if self._resume is Resume.ON or (self._resume is Resume.NEXT and line == self._line):
            return False
        self._stops_left -= 1
        self._line = line
        return self._stops_left <= 0

    def after(self, execution: Execution) -> None:
        scene, runner, item, start, done = execution
        for write in scene.writes.of(execution):
            self.written[scene.rank, write.tensor] = write
        if runner.is_dma and item.record.row is not None:
            queue = self.under_way[runner.index]
            while queue and queue[0].done <= start:
                queue.popleft()
            queue.append(Transfer(item, start, done))


def _is_path(path: str, wanted: str) -> bool:
    return path == wanted or not wanted or path.endswith("/" + wanted)


# ---- Dumps of tensors after each write by chosen source lines -----------------------------------

MAX_BYTES = 1 << 30  # limit on all dumps of a run


class Tap(NamedTuple):
    """The tensor called `name`, at its writes by `line` of a kernel's file."""

    name: str
    line: int


class Dump(NamedTuple):
    """A complete tensor after a write, in the storage type of its element type.

    `unwritten` is the number of elements that are uninitialised. `time` counts the writes of a line
    to tensors of one name, from 0, in program order.
    """

    write: Write
    dtype: DType
    array: Stored
    unwritten: int
    time: int = 0


class Dumps(Observer):
    """Dumps the writes that `taps` select.

    With `everything`, dump every write of every tensor or, with `lines`, the writes of the lines
    from the first to the last of them.
    """

    def __init__(
        self,
        taps: Iterable[Tap] = (),
        everything: bool = False,
        lines: tuple[int, int] | None = None,
    ) -> None:
        self.taps = tuple(taps)
        self.everything, self.lines = everything, lines
        self.bytes = 0
        self.by_rank: list[list[Dump]] = []  # by rank, in order of the writes

    def begin(self, scene: Scene) -> None:
        """Raise `UsageFailed` for a tap without any write."""
        for name, line in self.taps:
            scene.writes.check("--dump", name, line)
        self.by_rank.append([])

    def after(self, execution: Execution) -> None:
        scene = execution.scene
        for write in scene.writes.of(execution):
            if self._is_chosen(write) or (write.name, write.line) in self.taps:
                array = scene.tensors.contents(write.tensor)
                self._count(array.nbytes)
                missing = int((~scene.tensors.written(write.tensor)).sum())
                dtype = scene.tensors.record(write.tensor).dtype
                self.by_rank[scene.rank].append(Dump(write, dtype, array, missing))

    def end(self) -> None:
        """Number the writes of each line."""
        for dumps in self.by_rank:
            groups: dict[tuple[str, int], list[int]] = defaultdict(list)
            for number, dump in enumerate(dumps):
                groups[dump.write.name, dump.write.line].append(number)
            for group in groups.values():
                ordered = sorted(group, key=lambda number: dumps[number].write.key)
                for time, number in enumerate(ordered):
                    dumps[number] = dumps[number]._replace(time=time)

    def chosen(self, rank: int) -> list[Dump]:
        """Return the dumps that were selected without a tap."""
        return [dump for dump in self.by_rank[rank] if self._is_chosen(dump.write)]

    def of(self, rank: int, tap: Tap) -> list[Dump]:
        dumps = [dump for dump in self.by_rank[rank] if (dump.write.name, dump.write.line) == tap]
        return sorted(dumps, key=lambda dump: dump.time)

    def _is_chosen(self, write: Write) -> bool:
        low, high = self.lines or (write.line, write.line)
        return self.everything and low <= write.line <= high

    def _count(self, size: int) -> None:
        self.bytes += size
        if self.bytes > MAX_BYTES:
            text = f"the dumped tensors exceed {grouped(MAX_BYTES)} bytes"
            help = "dump one tensor with --dump NAME@LINE=FILE, or the writes of fewer lines"
            raise LimitHit([make("memory-limit", text, help=help)])


# ---- Watches: reports of every change of a tensor -----------------------------------------------


class Changed(NamedTuple):
    """A write that changed a watched tensor or part.

    `changes` is the number of elements that differ, or of all elements at the first write. `stats`
    are of the watched part.
    """

    part: Part
    write: Write
    changes: int
    stats: Stats


class Watches(Observer):
    def __init__(self, parts: Sequence[Part], tell: Callable[[Changed], object]) -> None:
        self.parts, self.tell = parts, tell
        self._contents: dict[tuple[int, int, Part], Stored] = {}  # by rank, tensor and part

    def begin(self, scene: Scene) -> None:
        """Raise `UsageFailed` for a tensor that is never written, or for an invalid part."""
        for watched in self.parts:
            scene.writes.check("--changes", watched.name)
            for number in scene.tensors.named[watched.name]:
                watched.check(scene.tensors.record(number).shape)

    def after(self, execution: Execution) -> None:
        for write in execution.scene.writes.of(execution):
            for watched in self.parts:
                if watched.name == write.name:
                    self._compare(execution.scene, watched, write)

    def _compare(self, scene: Scene, part: Part, write: Write) -> None:
        key, now = (scene.rank, write.tensor, part), part.of(scene.tensors.contents(write.tensor))
        before = self._contents.get(key)
        count = now.size if before is None else int(np.count_nonzero(_bits(now) != _bits(before)))
        self._contents[key] = now
        if count:
            dtype = scene.tensors.record(write.tensor).dtype
            self.tell(Changed(part, write, count, stats_of(now, dtype)))


def _bits(array: Stored) -> Stored:
    """Return the bits, so that equal NaNs compare equal, and -0 differs from 0."""
    bits: Stored = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
    return bits


def text(changed: Changed) -> str:
    write, stats = changed.write, changed.stats
    row = write.record.row.name if write.record.row else ""
    iterations = f" iteration {', '.join(map(str, write.iterations))}" if write.iterations else ""
    iterations += f" ({write.unrolled})" if write.unrolled else ""
    values = "" if stats.minimum is None else f"min {stats.minimum:g}  max {stats.maximum:g}  "
    rank = f"rank {write.rank}: " if write.rank else ""
    return (
        f"{rank}{clean(changed.part.text)}  line {write.line}{iterations}  "
        f"{write.done / 1e6:.3f} us  "
        f"{write.stream.name} {row}  wrote {region_text(write.region)}, "
        f"{plural(changed.changes, 'element')} changed  {values}nan {stats.nan}"
    )


# --------------------------------------------------------------------------------------------------

_MODES = {"read": "reads", "written": "writes"}
SHOWN = 64  # elements of an array that is shown in full
EDGE = 4


def microseconds(time: int) -> str:
    return f"{time / 1e6:.3f} us"


def place(scene: Scene, record: InstructionRecord) -> str:
    """Return the place of a record, as `kernel.py:12`."""
    path = clean(path_of(scene.executable, record.place).rpartition("/")[2])
    return f"{path}:{line_of(scene.executable, record.place)}"


def header(stop: Execution) -> Iterator[str]:
    scene, runner, item, start, _ = stop
    row = item.record.row
    iterations = (
        f", iteration {', '.join(map(str, runner.iterations))}" if runner.iterations else ""
    )
    name = row.name if row is not None else "nothing"
    location = place(scene, item.record)
    time = microseconds(start)
    yield f"{location}: {name} on {runner.name} is about to start at {time}{iterations}"
    source = scene.executable.sources.get(path_of(scene.executable, item.record.place))
    line = line_of(scene.executable, item.record.place)
    if source is not None and 0 < line <= len(lines := source.text.splitlines()):
        yield f"  {line} | {clean(lines[line - 1])}"


def where(stop: Execution) -> Iterator[str]:
    """Yield the instruction, with its operands and what it waited for."""
    scene, runner, item, _, _ = stop
    yield from header(stop)
    row = item.record.row
    if row is None:
        return
    facts = scene.executable.facts(item.record, scene.target, runner.record.engine)
    for rule, operand in zip(row.operands, item.record.operands, strict=False):
        if operand is None:
            continue
        does = ""
        if isinstance(operand, PatternRecord):
            mode = row.access_of(rule, facts)
            does = " and ".join(w for w in ("read", "written") if getattr(mode, _MODES[w])) + ": "
        yield f"  {rule.name} = {does}{_operand(scene, operand)}"
    for attribute, value in zip(row.attributes, item.record.attributes, strict=True):
        yield f"  {attribute.name} = {clean(repr(value))}"
    for semaphore, count in item.waits:
        signallers = ", ".join(_signallers(scene, runner, semaphore)) or "nobody"
        yield f"  waited for {plural(count, 'signal')} on semaphore {semaphore}, from {signallers}"


def _operand(scene: Scene, operand: object) -> str:
    if not isinstance(operand, PatternRecord):
        return clean(str(operand))
    tensor = scene.tensors.record(operand.tensor)
    box = region_text(None if operand.dynamic else region_of(scene.executable, operand))
    return f"{_named(scene, operand.tensor)}{box} {tensor.dtype} at {_address(tensor)}"


def _named(scene: Scene, number: int) -> str:
    name = scene.tensors.record(number).name
    others = scene.tensors.named[name]
    return clean(name) + (f"#{others.index(number) + 1}" if len(others) > 1 else "")


def _address(tensor: TensorRecord) -> str:
    if not tensor.buffer.on_chip:
        return tensor.buffer.value
    first, last = tensor.partition, tensor.partition + tensor.shape[0]
    low, high = tensor.byte, tensor.byte + tensor.bytes
    return f"{tensor.buffer.value} partitions {first}:{last}, bytes {low:,}:{high:,}"


def _signallers(scene: Scene, runner: Runner, semaphore: int) -> list[str]:
    return [
        other.name
        for other in scene.runners
        if other.core == runner.core
        and any(semaphore in getattr(item, "signals", ()) for item in other.items)
    ]


def engines(stop: Execution) -> Iterator[str]:
    for runner in stop.scene.runners:
        yield f"  {runner.name:<16} {plural(runner.count, 'instruction'):>18} started  " + _doing(
            stop, runner
        )


def _doing(stop: Execution, runner: Runner) -> str:
    scene, stopped_at, item, now, _ = stop
    if runner is stopped_at:
        return f"about to start {_next(scene, item.record)}"
    coming = runner.item or _coming(runner)
    until = max(runner.free, runner.moved)
    if coming is None:
        if until > now:
            return f"busy until {microseconds(until)}"
        is_open = runner.loops or runner.next_index < len(runner.items)
        return "at a loop's end" if is_open else "ended"
    if until > now:
        return f"busy until {microseconds(until)}; next {_next(scene, coming.record)}"
    lacking = scene.machine.lacking(runner, coming)
    if not lacking:
        return f"next {_next(scene, coming.record)}"
    signallers = ", ".join(n for s in lacking for n in _signallers(scene, runner, s)) or "nobody"
    return f"waits for {signallers}; next {_next(scene, coming.record)}"


def _coming(runner: Runner) -> Item | None:
    """Return the next item, if no loop decision is needed to find it."""
    if runner.next_index >= len(runner.items) or (
        runner.loops and runner.next_index == runner.loops[-1].end
    ):
        return None
    item = runner.items[runner.next_index]
    return item if isinstance(item, Item) else None


def _next(scene: Scene, record: InstructionRecord) -> str:
    return f"{record.row.name if record.row else 'nothing'} ({place(scene, record)})"


def queues(debugger: Debugger, stop: Execution) -> Iterator[str]:
    """Yield every DMA queue, with its transfers in flight."""
    scene, now = stop.scene, stop.start
    for runner in scene.runners:
        if not runner.is_dma:
            continue
        in_flight = [
            transfer for transfer in debugger.under_way[runner.index] if transfer.done > now
        ]
        moved = f"{runner.count} started, {size(runner.bytes)} moved"
        yield f"  {runner.name}: {len(in_flight)} under way, {moved}"
        for transfer in in_flight:
            next_text = _next(scene, transfer.item.record)
            end = microseconds(transfer.done)
            yield f"    {next_text}, {size(transfer.item.bytes)}, complete at {end}"


def tensors(debugger: Debugger, stop: Execution) -> Iterator[str]:
    scene = stop.scene
    for number, tensor in enumerate(scene.executable.tensors):
        sizes = ", ".join(map(str, tensor.shape))
        last = debugger.written.get((scene.rank, number))
        origin = "given" if tensor.role in ("input", "constant") else "not written yet"
        if last is not None:
            by = f"{place(scene, last.record)} on {last.stream.name}"
            origin = f"written by {by}, complete at {microseconds(last.done)}"
        yield f"  {_named(scene, number)}: {tensor.dtype}[{sizes}] {_address(tensor)}; {origin}"


def memory(stop: Execution) -> Iterator[str]:
    """Yield the resident on-chip tensors by address, and the use of each memory."""
    scene = stop.scene
    for buffer in MEMORIES:
        residents = [n for n in _resident(scene) if scene.tensors.record(n).buffer is buffer]
        total = sum(
            scene.tensors.record(n).bytes * scene.tensors.record(n).shape[0] for n in residents
        )
        yield f"  {buffer.value}: {plural(len(residents), 'tensor')}, {size(total)}"
        for number in sorted(residents, key=lambda n: scene.tensors.record(n)[6:8]):
            tensor = scene.tensors.record(number)
            yield f"    {_named(scene, number)}: {_address(tensor)}, core {tensor.core}"


def _resident(scene: Scene) -> list[int]:
    """Return the tensors that own their bytes at this moment.

    Without the check of uninitialised bytes this is unknown, and all tensors are returned.
    """
    shadow = scene.tensors.shadow
    numbers = range(len(scene.executable.tensors))
    if shadow is None:
        return list(numbers)
    return [n for n in numbers if shadow.owns_bytes[n]]


def contents(debugger: Debugger, stop: Execution, text: str) -> Iterator[str]:
    """Yield the contents of a tensor, or of a part of one. Raises `UsageFailed`."""
    wanted, number = chosen(debugger, stop, text)
    scene = stop.scene
    tensor = scene.tensors.record(number)
    wanted.check(tensor.shape)
    array = wanted.of(scene.tensors.contents(number))
    missing = int(np.count_nonzero(wanted.of(scene.tensors.written(number)) == 0))
    stats, shape = stats_of(array, tensor.dtype), ", ".join(map(str, array.shape))
    last = debugger.written.get((scene.rank, number))
    origin = ""
    if last is not None:
        origin = f", written by {place(scene, last.record)}"
        late = last.done > stop.start and last.stream is not stop.runner.record
        origin += f", which is under way until {microseconds(last.done)}" if late else ""
    yield f"{_named(scene, number)} {tensor.dtype}[{shape}] at {_address(tensor)}{origin}"
    statistics_text = (
        f"min {stats.minimum:g}  mean {stats.mean:g}  max {stats.maximum:g}  "
        if (stats.minimum is not None and stats.mean is not None and stats.maximum is not None)
        else ""
    )
    unwritten = f"  unwritten {grouped(missing)}" if missing else ""
    yield f"{statistics_text}nan {stats.nan}  inf {stats.inf}{unwritten}"
    values = numbers(array, tensor.dtype)
    yield from np.array2string(
        values, max_line_width=100, precision=6, threshold=SHOWN, edgeitems=EDGE
    ).splitlines()


def chosen(debugger: Debugger, stop: Execution, text: str) -> tuple[Part, int]:
    """Return the tensor that `NAME` or `NAME#2` refers to.

    Among several of one name, it is the one that the instruction accesses, else the last one
    written.
    """
    wanted = part(text)
    name, mark, ordinal = wanted.name.partition("#")
    numbers = stop.scene.tensors.named.get(name, [])
    if not numbers:
        names = [clean(known) for known in stop.scene.tensors.named if known]
        raise bad_value(f"there is no tensor `{clean(name)}`", suggestion(name, names, "there are"))
    if mark:
        number = whole_number(ordinal, len(numbers))
        if not number:
            text = f"there are {len(numbers)} tensors `{clean(name)}`, and no #{clean(ordinal)}"
            raise bad_value(text, f"write {clean(name)}#1 to {clean(name)}#{len(numbers)}")
        return wanted, numbers[number - 1]
    operands = stop.item.record.operands
    accessed = [o.tensor for o in operands if isinstance(o, PatternRecord) and o.tensor in numbers]
    if accessed:
        return wanted, accessed[0]
    rank, written = stop.scene.rank, debugger.written
    return wanted, max(numbers, key=lambda n: written[rank, n].done if (rank, n) in written else -1)
