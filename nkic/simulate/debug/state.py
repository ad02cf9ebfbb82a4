"""The text of a stop: the instruction, engines, queues, tensors and memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nkic.base.diagnostics import bad_value
from nkic.base.suggest import suggestion
from nkic.base.text import clean, grouped, plural, size
from nkic.machine.memory import MEMORIES
from nkic.neff.records import InstructionRecord, PatternRecord, TensorRecord
from nkic.simulate.comparison.stats import stats_of
from nkic.simulate.debug.breakpoints import Debugger
from nkic.simulate.debug.observed import Execution, Scene
from nkic.simulate.debug.parts import Part, part
from nkic.simulate.debug.writes import line_of, path_of, region_of, region_text
from nkic.simulate.io.numbers import numbers
from nkic.simulate.streams import Item, Runner

_MODES = {"read": "reads", "written": "writes"}
SHOWN = 64  # elements of an array that is shown in full
EDGE = 4


def microseconds(time: int) -> str:
    """Format a time in picoseconds."""
    return f"{time / 1e6:.3f} us"


def place(scene: Scene, record: InstructionRecord) -> str:
    """Return the place of a record, as `kernel.py:12`."""
    path = clean(path_of(scene.executable, record.place).rpartition("/")[2])
    return f"{path}:{line_of(scene.executable, record.place)}"


def header(stop: Execution) -> Iterator[str]:
    """Yield a line on where the run has stopped, and the line of source."""
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
    """Return the streams of the same core that signal the semaphore."""
    return [
        other.name
        for other in scene.runners
        if other.core == runner.core
        and any(semaphore in getattr(item, "signals", ()) for item in other.items)
    ]


def engines(stop: Execution) -> Iterator[str]:
    """Yield the current and the next instruction of every stream."""
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
        return f"busy until {microseconds(until)}" if until > now else _at_end(runner)
    if until > now:
        return f"busy until {microseconds(until)}; next {_next(scene, coming.record)}"
    tokens = scene.machine.tokens[runner.unit]
    lacking = [s for s, count in coming.waits if len(tokens[s]) < count]
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


def _at_end(runner: Runner) -> str:
    return (
        "ended"
        if not runner.loops and runner.next_index >= len(runner.items)
        else "at a loop's end"
    )


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
    """Yield all tensors: type, address, and last writer."""
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
        if not ordinal.isdigit() or not 0 < int(ordinal) <= len(numbers):
            text = f"there are {len(numbers)} tensors `{clean(name)}`, and no #{clean(ordinal)}"
            raise bad_value(text, f"write {clean(name)}#1 to {clean(name)}#{len(numbers)}")
        return wanted, numbers[int(ordinal) - 1]
    operands = stop.item.record.operands
    accessed = [o.tensor for o in operands if isinstance(o, PatternRecord) and o.tensor in numbers]
    if accessed:
        return wanted, accessed[0]
    rank, written = stop.scene.rank, debugger.written
    return wanted, max(numbers, key=lambda n: written[rank, n].done if (rank, n) in written else -1)
