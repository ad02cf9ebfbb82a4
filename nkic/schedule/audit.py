"""Independent proof: final addresses and streams alone order every conflicting pair.

The streams are run abstractly, without values and times, as far as semaphores let them. Every
item gets a clock: for each stream, how many items are surely complete when it starts. An
access is in order when the last accesses that conflict with it are in its clock:
- within a tensor, per cell (ir.overlap): the last writer, and for a write all readers since;
- between tensors that share bytes (reuse, or `address=`): everything the former owner did.
A stream that can never go on is a deadlock. Device loops are run twice, which shows what one
iteration may do to the next.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from typing import NamedTuple

from nkic.ir.effects import Touches, touches_of
from nkic.ir.overlap import Bands, Box, Cells
from nkic.ir.program import Body, Instruction, Program
from nkic.ir.schedule import Schedule, Slot, Stream, StreamItem
from nkic.ir.tensors import Tensor
from nkic.machine.engines import Engine

Clock = list[int]
ITERATIONS = 2


class Disorder(NamedTuple):
    """A proof that failed: `instruction` may run before or while `what` happens."""

    instruction: Instruction | None
    what: str

    def __str__(self) -> str:
        name = self.instruction.row.name if self.instruction else "stream"
        at = f" at {self.instruction.at.span}" if self.instruction else ""
        return f"{name}{at}: {self.what}"


def audit(schedule: Schedule) -> list[Disorder]:
    """Every unordered conflict and every deadlock; empty means proven."""
    found: list[Disorder] = []
    for body, streams in zip(schedule.program.cores, schedule.cores, strict=True):
        found += _Machine(schedule.program, body, streams).run()
    return found


class _Runner:
    """One stream: what it still has to do, and its clocks."""

    def __init__(self, index: int, stream: Stream, count: int) -> None:
        self.index = index
        self.stream = stream
        self.items = _unrolled(stream.items)
        self.next: Slot | None = next(self.items, None)
        self.known: Clock = [0] * count
        self.done: Clock = [0] * count


def _unrolled(items: tuple[StreamItem, ...]) -> Iterator[Slot]:
    for item in items:
        if isinstance(item, Slot):
            yield item
        else:
            for _ in range(ITERATIONS):
                yield from _unrolled(item.items)


class _State:
    """The last accesses to one cell, as (stream, position)."""

    __slots__ = ("readers", "writer")

    def __init__(self) -> None:
        self.writer: tuple[int, int] | None = None
        self.readers: dict[int, int] = {}


class _Machine:
    def __init__(self, program: Program, body: Body, streams: tuple[Stream, ...]) -> None:
        self.runners = [_Runner(i, s, len(streams)) for i, s in enumerate(streams)]
        self.tokens: dict[int, deque[Clock]] = defaultdict(deque)
        self.accesses = touches_of(body, program.target)
        self.cells = self._cut()
        self.states: dict[int, list[_State]] = {
            t: [_State() for _ in range(c.count)] for t, c in self.cells.items()
        }
        self.tenancy = _Tenancy(program, self.accesses, len(streams))
        self.found: list[Disorder] = []

    def _cut(self) -> dict[int, Cells]:
        boxes: dict[int, list[Box]] = defaultdict(list)
        for number in self.accesses:
            for touch in self.accesses[number]:
                boxes[touch.pattern.tensor.number].append(touch.area)
        return {tensor: Cells(found) for tensor, found in boxes.items()}

    def run(self) -> list[Disorder]:
        moved = True
        while moved:
            moved = False
            for runner in self.runners:
                while runner.next is not None and self._ready(runner.next):
                    self._step(runner, runner.next)
                    moved = True
        for runner in self.runners:
            if runner.next is not None:
                what = f"stream {runner.stream.id} waits for a signal that never comes"
                self.found.append(Disorder(runner.next.instruction, what))
        return self.found

    def _ready(self, slot: Slot) -> bool:
        return all(len(self.tokens[s]) >= count for s, count in slot.waits)

    def _step(self, runner: _Runner, slot: Slot) -> None:
        for semaphore, count in slot.waits:
            for _ in range(count):
                _join(runner.known, self.tokens[semaphore].popleft())
        position = runner.done[runner.index] + 1
        if slot.instruction is not None:
            self._check(runner, slot.instruction, position)
        _join(runner.done, runner.known)
        runner.done[runner.index] = position
        if runner.stream.id.engine is not Engine.DMA:
            runner.known[runner.index] = position
        for semaphore in slot.signals:
            self.tokens[semaphore].append(list(runner.done))
        runner.next = next(runner.items, None)

    def _check(self, runner: _Runner, instruction: Instruction, position: int) -> None:
        for touch in self.accesses[instruction.number]:
            tensor = touch.pattern.tensor
            if tensor.on_chip:
                former = self.tenancy.unordered(tensor, runner.known)
                if former is not None:
                    what = f"{tensor!r} takes over bytes of {former!r} that are still in use"
                    self.found.append(Disorder(instruction, what))
                self.tenancy.note(tensor, runner.index, position)
            states = self.states[tensor.number]
            for index in self.cells[tensor.number][touch.area]:
                if not _ordered(
                    states[index], touch.writes, runner.known, (runner.index, position)
                ):
                    what = f"conflicts with an access to {tensor!r} that it does not wait for"
                    self.found.append(Disorder(instruction, what))
                _note(states[index], touch.writes, runner.index, position)


def _ordered(state: _State, writes: bool, known: Clock, me: tuple[int, int]) -> bool:
    writer = state.writer
    if writer is not None and writer != me and known[writer[0]] < writer[1]:
        return False
    if not writes:
        return True
    return all(known[s] >= p or (s, p) == me for s, p in state.readers.items())


def _note(state: _State, writes: bool, stream: int, position: int) -> None:
    if writes:
        state.writer = (stream, position)
        state.readers = {}
    else:
        state.readers[stream] = position


class _Tenancy:
    """Which tensor has each byte of SBUF and PSUM, and what its former owners did last."""

    def __init__(
        self,
        program: Program,
        accesses: Touches,
        streams: int,
    ) -> None:
        tensors: dict[int, Tensor] = {}
        for found in accesses.values():
            for touch in found:
                if touch.pattern.tensor.on_chip:
                    tensors[touch.pattern.tensor.number] = touch.pattern.tensor
        self.streams = streams
        self.segments = _segments(tensors, program)
        self.owner: dict[Segment, Tensor] = {}
        self.resident: dict[int, bool] = {}
        self.touched: dict[int, Clock] = {}
        self.inherited: dict[int, tuple[Clock, Tensor | None]] = {}

    def unordered(self, tensor: Tensor, known: Clock) -> Tensor | None:
        """A former owner of `tensor`'s bytes that may still use them, or None."""
        if not self.resident.get(tensor.number):
            self._move_in(tensor)
        needed, former = self.inherited[tensor.number]
        return None if all(k >= n for k, n in zip(known, needed, strict=True)) else former

    def _move_in(self, tensor: Tensor) -> None:
        needed, former = (
            list(self.inherited.get(tensor.number, ([0] * self.streams, None))[0]),
            None,
        )
        for segment in self.segments[tensor.number]:
            owner = self.owner.get(segment)
            if owner is not None and owner is not tensor:
                _join(needed, self.touched[owner.number])
                self.resident[owner.number] = False
                former = owner
            self.owner[segment] = tensor
        self.resident[tensor.number] = True
        self.inherited[tensor.number] = (needed, former)

    def note(self, tensor: Tensor, stream: int, position: int) -> None:
        """Remembers an access."""
        self.touched.setdefault(tensor.number, [0] * self.streams)[stream] = position


Segment = tuple[str, int, int]  # memory, band of partitions, piece of its bytes


def _segments(tensors: dict[int, Tensor], program: Program) -> dict[int, list[Segment]]:
    """Each tensor's bytes as the pieces between all tensors' ends, in each band it spans."""
    bands = Bands(program.addresses[n].partition for n in tensors)
    cuts: dict[str, set[int]] = defaultdict(set)
    for number, tensor in tensors.items():
        low = program.addresses[number].byte
        cuts[tensor.buffer.value] |= {low, low + tensor.bytes}
    index = {m: {byte: i for i, byte in enumerate(sorted(found))} for m, found in cuts.items()}
    found: dict[int, list[Segment]] = {}
    for number, tensor in tensors.items():
        memory = tensor.buffer.value
        partition, low = program.addresses[number]
        pieces = range(index[memory][low], index[memory][low + tensor.bytes])
        spans = bands.of(partition, tensor.partitions)
        found[number] = [(memory, band, piece) for band in spans for piece in pieces]
    return found


def _join(clock: Clock, other: Clock) -> None:
    for i, value in enumerate(other):
        if value > clock[i]:
            clock[i] = value
