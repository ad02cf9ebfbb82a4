"""A schedule's streams in the form of the proofs; checks each instruction's place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from nkic.ir.program import Body, Instruction, Loop, instructions
from nkic.ir.schedule import Schedule, Slot, Stream, StreamItem, StreamLoop
from nkic.machine.facts import Register
from nkic.prove.model import Finding, Item, Line, Round

Path = tuple[int, ...]  # numbers of loops, outermost first


def read_streams(schedule: Schedule) -> tuple[list[list[Line]], list[Finding]]:
    """Return the streams of every core, and the findings.

    There is a finding for each instruction of the program that is not exactly once in the streams,
    in its place.
    """
    cores, findings = [], []
    for body, streams in zip(schedule.program.cores, schedule.cores, strict=True):
        reader = _Streams(body)
        cores.append([reader.stream(stream) for stream in streams])
        reader.finish()
        findings += reader.findings
    return cores, findings


@dataclass
class _Streams:
    """Compares the contents of one core's streams with its body."""

    body: Body
    findings: list[Finding] = field(default_factory=list)
    missing: dict[int, Instruction] = field(default_factory=dict)  # not yet in a stream
    paths: dict[int, Path] = field(default_factory=dict)  # of instructions in loops
    loops: dict[int, tuple[Loop, Path]] = field(default_factory=dict)
    entered: set[int] = field(default_factory=set)  # loops that this stream has entered

    def __post_init__(self) -> None:
        self.expect(self.body, ())

    def expect(self, body: Body, path: Path) -> None:
        for item in body:
            if isinstance(item, Loop):
                self.loops[item.number] = (item, path)
                self.expect(item.body, (*path, item.number))
            else:
                self.missing[item.number] = item
                if path:
                    self.paths[item.number] = path

    def stream(self, stream: Stream) -> Line:
        self.entered.clear()
        items = self.items(stream.items, (), stream)
        return Line(stream.id.engine, stream.id.queue, items)

    def items(
        self, items: Sequence[StreamItem], path: Path, stream: Stream
    ) -> tuple[Item | Round, ...]:
        converted: list[Item | Round] = []
        take, paths, engine, new = self.missing.pop, self.paths, stream.id.engine, tuple.__new__
        for item in items:
            if not isinstance(item, Slot):
                converted.append(self.loop(item, path, stream))
                continue
            instruction, waits, signals = item
            if instruction is None:
                converted.append(Item(-1, waits, signals))
                continue
            number, row = instruction.number, instruction.row
            expected = take(number, None)
            fits = expected is instruction and (not paths or paths.get(number, ()) == path)
            if not fits or instruction.engine is not engine:
                self.misplaced(instruction, expected, path, stream)
            rendezvous_row = row if row.rendezvous_rule is not None else None
            converted.append(new(Item, (number, waits, signals, rendezvous_row)))
        return tuple(converted)

    def loop(self, item: StreamLoop, path: Path, stream: Stream) -> Round:
        loop = item.loop
        expected, expected_path = self.loops.get(loop.number, (None, path))
        if loop.number in self.entered or expected != loop or expected_path != path:
            text = f"stream {stream.id} has a loop that the program does not have there"
            self.findings.append(Finding("once", text, loop.at))
        self.entered.add(loop.number)
        bounds = tuple(v.number for v in (loop.start, loop.stop) if isinstance(v, Register))
        condition = loop.condition.number if loop.condition is not None else -1
        nested = self.items(item.items, (*path, loop.number), stream)
        return Round(loop.number, bounds, condition, nested)

    def misplaced(
        self, instruction: Instruction, expected: Instruction | None, path: Path, stream: Stream
    ) -> None:
        """Report an instruction that is out of place; `expected` has its number, if missing."""
        if instruction != (expected or self.program.get(instruction.number)):
            self.complain(instruction, "is not in the program")
        elif self.paths.get(instruction.number, ()) != path:
            self.complain(instruction, "is in other loops than in the program")
        elif instruction.engine is not stream.id.engine:
            self.complain(instruction, f"is in the stream {stream.id}")
        elif expected is None:
            self.complain(instruction, "is in the streams twice")

    @cached_property
    def program(self) -> dict[int, Instruction]:
        return {instruction.number: instruction for instruction in instructions(self.body)}

    def finish(self) -> None:
        """Report the instructions that are in no stream."""
        for instruction in self.missing.values():
            self.complain(instruction, "is in no stream")

    def complain(self, instruction: Instruction, problem: str) -> None:
        self.findings.append(
            Finding(
                "once", f"{instruction.row.name} #{instruction.number} {problem}", instruction.at
            )
        )
