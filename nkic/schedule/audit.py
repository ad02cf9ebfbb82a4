"""Independent proof: final addresses and streams alone order every conflicting pair.

The streams of all cores are run abstractly (`running`). An access is in order when the last
accesses of its core that conflict with it are in the clock that it starts with:
- within a tensor, per cell (ir.overlap): the last writer, and for a write all readers since;
- between tensors that share bytes (reuse, or `address=`): everything the former owner did.
A stream that can never go on is a deadlock. Accesses of two cores to one tensor are no affair
of the schedule's: only the kernel can order them (`races`).
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from nkic.ir.effects import Touches, touches_of
from nkic.ir.overlap import Bands, Box, Cells
from nkic.ir.program import Body, Instruction, Program
from nkic.ir.schedule import Schedule
from nkic.ir.tensors import Tensor
from nkic.schedule.running import AbstractRun, Clock, Runner, join


class Disorder(NamedTuple):
    """A proof that failed: `instruction` may run before or while `what` happens."""

    instruction: Instruction | None
    what: str

    def __str__(self) -> str:
        name = self.instruction.row.name if self.instruction else "stream"
        at = f" at {self.instruction.at.span}" if self.instruction else ""
        return f"{name}{at}: {self.what}"


def audit(schedule: Schedule) -> list[Disorder]:
    """Every unordered conflict within a core and every deadlock; empty means proven."""
    return _Proof(schedule).proved()


class _State:
    """The last accesses to one cell, as (stream, position)."""

    __slots__ = ("readers", "writer")

    def __init__(self) -> None:
        self.writer: tuple[int, int] | None = None
        self.readers: dict[int, int] = {}


class _Core:
    """What the instructions of one core have touched."""

    def __init__(self, program: Program, body: Body, streams: int) -> None:
        self.accesses = touches_of(body, program.target)
        self.cells = self._cut()
        self.states: dict[int, list[_State]] = {
            t: [_State() for _ in range(c.count)] for t, c in self.cells.items()
        }
        self.tenancy = _Tenancy(program, self.accesses, streams)

    def _cut(self) -> dict[int, Cells]:
        boxes: dict[int, list[Box]] = defaultdict(list)
        for number in self.accesses:
            for touch in self.accesses[number]:
                boxes[touch.pattern.tensor.number].append(touch.area)
        return {tensor: Cells(found) for tensor, found in boxes.items()}


class _Proof(AbstractRun):
    def __init__(self, schedule: Schedule) -> None:
        super().__init__(schedule)
        program, count = schedule.program, len(self.runners)
        self.cores = [_Core(program, body, count) for body in program.cores]
        self.found: list[Disorder] = []

    def proved(self) -> list[Disorder]:
        """What the run found wrong."""
        for runner in self.run():
            what = f"stream {runner.stream.id} waits for a signal that never comes"
            instruction = runner.next.instruction if runner.next is not None else None
            self.found.append(Disorder(instruction, what))
        return self.found

    def visit(self, runner: Runner, instruction: Instruction, position: int) -> None:
        core = self.cores[runner.core]
        for touch in core.accesses[instruction.number]:
            tensor = touch.pattern.tensor
            if tensor.on_chip:
                former = core.tenancy.unordered(tensor, runner.known)
                if former is not None:
                    what = f"{tensor!r} takes over bytes of {former!r} that are still in use"
                    self.found.append(Disorder(instruction, what))
                core.tenancy.note(tensor, runner.index, position)
            states = core.states[tensor.number]
            for index in core.cells[tensor.number][touch.area]:
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
                join(needed, self.touched[owner.number])
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
