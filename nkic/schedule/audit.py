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

from nkic.ir.effects import Touches, cells_of, touches_of
from nkic.ir.overlap import Bands
from nkic.ir.program import Body, Instruction, Program
from nkic.ir.schedule import Schedule
from nkic.ir.tensors import Tensor
from nkic.schedule.running import AbstractRun, Clock, Runner

Positions = dict[int, int]  # by stream, the number of one of its items


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

    def __init__(self, program: Program, body: Body) -> None:
        self.accesses = touches_of(body, program.target)
        self.cells = cells_of(body, program.target)
        self.states: dict[int, list[_State]] = {
            t: [_State() for _ in range(c.count)] for t, c in self.cells.items()
        }
        self.tenancy = _Tenancy(program, self.accesses)


class _Proof(AbstractRun):
    def __init__(self, schedule: Schedule) -> None:
        super().__init__(schedule)
        program = schedule.program
        self.cores = [_Core(program, body) for body in program.cores]
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
            me = (runner.index, position)
            for index in core.cells[tensor.number][touch.area]:
                if not _ordered(states[index], touch.writes, runner.known, me):
                    what = f"conflicts with an access to {tensor!r} that it does not wait for"
                    self.found.append(Disorder(instruction, what))
                if touch.writes:
                    states[index].writer, states[index].readers = me, {}
                else:
                    states[index].readers[runner.index] = position


def _ordered(state: _State, writes: bool, known: Clock, me: tuple[int, int]) -> bool:
    writer = state.writer
    if writer is not None and known[writer[0]] < writer[1] and writer != me:
        return False
    if writes:
        for stream, position in state.readers.items():
            if known[stream] < position and (stream, position) != me:
                return False
    return True


class _Tenancy:
    """Which tensor has each byte of SBUF and PSUM, and what its former owners did last."""

    def __init__(
        self,
        program: Program,
        accesses: Touches,
    ) -> None:
        tensors: dict[int, Tensor] = {}
        for found in accesses.values():
            for touch in found:
                if touch.pattern.tensor.on_chip:
                    tensors[touch.pattern.tensor.number] = touch.pattern.tensor
        self.segments = _segments(tensors, program)
        self.owner: dict[Segment, Tensor] = {}
        self.resident: dict[int, bool] = {}
        self.touched: dict[int, Positions] = {}
        self.inherited: dict[int, tuple[Positions, Tensor | None]] = {}

    def unordered(self, tensor: Tensor, known: Clock) -> Tensor | None:
        """A former owner of `tensor`'s bytes that may still use them, or None."""
        if not self.resident.get(tensor.number):
            self._move_in(tensor)
        needed, former = self.inherited[tensor.number]
        for stream, position in needed.items():
            if known[stream] < position:
                return former
        return None

    def _move_in(self, tensor: Tensor) -> None:
        needed: Positions = dict(self.inherited.get(tensor.number, ({}, None))[0])
        former = None
        for segment in self.segments[tensor.number]:
            owner = self.owner.get(segment)
            if owner is not None and owner is not tensor:
                for stream, position in self.touched[owner.number].items():
                    needed[stream] = max(position, needed.get(stream, 0))
                self.resident[owner.number] = False
                former = owner
            self.owner[segment] = tensor
        self.resident[tensor.number] = True
        self.inherited[tensor.number] = (needed, former)

    def note(self, tensor: Tensor, stream: int, position: int) -> None:
        """Remembers an access."""
        self.touched.setdefault(tensor.number, {})[stream] = position


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
