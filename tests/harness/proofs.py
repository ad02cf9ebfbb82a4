"""Schedules and files of small programs, and functions that break them, for tests of the proofs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from nkic.artifact.container import unpack
from nkic.artifact.encode import write
from nkic.artifact.read import read as decode
from nkic.artifact.records import Executable, InstructionRecord, StreamRecord
from nkic.base.diagnostics import Reporter
from nkic.compiler.allocate import allocate
from nkic.compiler.depend import depend
from nkic.compiler.emit import emit
from nkic.compiler.lower import lower
from nkic.compiler.schedule import schedule
from nkic.program.program import (
    DependenceGraph,
    Program,
    Schedule,
    Slot,
    Stream,
    StreamItem,
    StreamLoop,
)
from nkic.prove import Finding, prove_addresses, prove_file, prove_lowered, prove_order, read

Graphs = tuple[DependenceGraph, ...]
Items = list[StreamItem]


@dataclass(frozen=True)
class Made:
    """A program after each of the stages."""

    lowered: Program
    placed: Program
    schedule: Schedule

    def order(self, changed: Schedule | None = None) -> list[Finding]:
        """Return the findings of the schedule's proof."""
        return prove_order(self.lowered, changed or self.schedule, read(self.lowered))

    def addresses(self, changed: Program | None = None) -> list[Finding]:
        """Return the findings of the allocation's proof."""
        return prove_addresses(changed or self.placed, read(self.lowered))

    def rules(self, changed: Schedule) -> set[str]:
        return {finding.rule for finding in self.order(changed)}

    def file(self) -> Executable:
        return decode(write(emit(self.schedule, {})))


def make(program: Program, serial: bool = False, graphs: Graphs | None = None) -> Made:
    """Compile `program` up to a schedule; with `graphs`, by other dependences."""
    lowered = lower(program, Reporter())
    assert prove_lowered(program, lowered) == []
    placed, found = allocate(lowered, graphs or depend(lowered), Reporter())
    return Made(lowered, placed, schedule(placed, found, serial))


def differences(found: Schedule, executable: Executable) -> list[Finding]:
    """Return the findings of the file's proof."""
    return prove_file(found, sections(write(executable)))


def sections(data: bytes) -> dict[str, memoryview]:
    """Return the contents of a file's sections."""
    return {name: section.data for name, section in unpack(data).sections.items()}


def edited(found: Schedule, name: str, edit: Callable[[Items], None], core: int = 0) -> Schedule:
    """Return the schedule with the items of stream `name` changed by `edit`, outside of loops."""
    return _with(found, core, lambda s: _edited(s, edit) if str(s.id) == name else s)


def in_loops(found: Schedule, edit: Callable[[Items], None], core: int = 0) -> Schedule:
    """Return the schedule with `edit` applied to the items of every loop of every stream."""

    def deeper(items: Sequence[StreamItem]) -> tuple[StreamItem, ...]:
        return tuple(_loop(i) if isinstance(i, StreamLoop) else i for i in items)

    def _loop(loop: StreamLoop) -> StreamLoop:
        inside = list(deeper(loop.items))
        edit(inside)
        return StreamLoop(loop.loop, tuple(inside))

    return _with(found, core, lambda s: Stream(s.id, deeper(s.items)))


def _edited(stream: Stream, edit: Callable[[Items], None]) -> Stream:
    items = list(stream.items)
    edit(items)
    return Stream(stream.id, tuple(items))


def _with(found: Schedule, core: int, change: Callable[[Stream], Stream]) -> Schedule:
    cores = list(found.cores)
    cores[core] = tuple(change(stream) for stream in cores[core])
    return replace(found, cores=tuple(cores))


def slot(item: StreamItem) -> Slot:
    """Return the item, which must not be a loop."""
    assert isinstance(item, Slot)
    return item


def swapped(at: int) -> Callable[[Items], None]:
    """Exchange the instructions of two neighbours; their waits and signals stay."""

    def edit(items: Items) -> None:
        one, two = slot(items[at]), slot(items[at + 1])
        items[at] = one._replace(instruction=two.instruction)
        items[at + 1] = two._replace(instruction=one.instruction)

    return edit


def dropped(at: int) -> Callable[[Items], None]:
    """Remove an instruction; its waits and signals stay."""

    def edit(items: Items) -> None:
        items[at] = slot(items[at])._replace(instruction=None)

    return edit


def without_waits(at: int) -> Callable[[Items], None]:
    def edit(items: Items) -> None:
        items[at] = slot(items[at])._replace(waits=())

    return edit


def with_stream(found: Executable, index: int, stream: StreamRecord) -> Executable:
    streams = (*found.streams[:index], stream, *found.streams[index + 1 :])
    return replace(found, streams=streams)


def slots(found: Executable) -> list[tuple[int, int, InstructionRecord]]:
    """Return the instructions, each with its stream and its place there."""
    return [
        (s, at, item)
        for s, stream in enumerate(found.streams)
        for at, item in enumerate(stream.items)
        if isinstance(item, InstructionRecord)
    ]


def allocated(found: Program) -> Program:
    done, _ = allocate(found, depend(found), Reporter())
    assert prove_addresses(done, read(found)) == []
    return done
