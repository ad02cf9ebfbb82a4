"""Proof of a schedule: conflicting accesses are ordered, and in program order.

The streams are first run abstractly (`run`), which gives each instruction its vector clock. Then
the program is walked in its own order: the clock of each access must include the last conflicting
accesses (`Ledger`). So a pair in the wrong order is found just like an unordered pair. Changes of
ownership of bytes are checked in the order of the placed program, in which allocate may have
postponed writes: by the ledger in places whose tensors take turns, as `addresses` has proven, and
otherwise byte by byte (`Tenancy`).
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from nkic.machine.operands import Register
from nkic.program.program import (
    Body,
    Instruction,
    Loop,
    Program,
    Schedule,
    Slot,
    Stream,
    StreamItem,
    StreamLoop,
    instructions,
)
from nkic.prove.effects import Places, Reading, bands, reading_of
from nkic.prove.effects import Touches as TouchTuple
from nkic.prove.model import READ, Finding, Item, Line, Round, Storage
from nkic.prove.run import ITERATIONS, AbstractRun, Core, Decision, Runner, Start

# ---- The last accesses to each cell, and whether a new access is ordered after them -------------

Touches = Sequence[tuple[Sequence[int], int, int]]  # cells, mode, tensor
NONE: Mapping[int, Start | None] = {}
Formers = Mapping[int, Sequence[int]]


class Ledger:
    """The last accesses to the cells of a core.

    `formers` has the cells of the former owner of a tensor's bytes. Until a cell has been written,
    its accesses must follow those of the former owner; all others follow that write. With
    `in_turn`, a write that follows the reads since the last write need not be compared with that
    write, which they follow or are found not to. Both hold without loops only, after which a stream
    may know less than before (`run`).
    """

    def __init__(
        self, cells: int, core: Core, formers: Formers | None = None, in_turn: bool = False
    ) -> None:
        self.core = core
        self.in_order = [line.in_order for line in core.lines]
        self.formers = formers or {}
        self.in_turn = in_turn
        self.writers: list[Start | None] = [None] * cells
        # The last access of each stream since the write; without a dictionary if there is only one.
        self.readers: list[dict[int, Start] | Start | None] = [None] * cells

    def note(self, start: Start, touches: Touches) -> Mapping[int, Start | None]:
        """Record the accesses of an instruction.

        Return those, by index, that conflict with an earlier access which they do not follow,
        together with that access; None for one to a former owner of the bytes.
        """
        clock, writers, readers, in_turn = start[2], self.writers, self.readers, self.in_turn
        missed = NONE
        for index, (cells, mode, storage) in enumerate(touches):
            for cell in cells:
                last, others = writers[cell], readers[cell]
                if last is None:
                    if storage in self.formers and not self.is_left(storage, start):
                        missed = {**missed, index: None}
                elif (
                    clock[last[0]] < last[1]
                    and (mode == READ or others is None or not in_turn)
                    and not self.follows(start, last)
                ):
                    missed = {**missed, index: last}
                if mode == READ:
                    readers[cell] = start if others is None else _with(others, start)
                    continue
                if others is not None:
                    for last in (others,) if isinstance(others, tuple) else others.values():
                        if clock[last[0]] < last[1] and not self.follows(start, last):
                            missed = {**missed, index: last}
                    readers[cell] = None
                writers[cell] = start
        return missed

    def is_left(self, storage: int, start: Start) -> bool:
        """Return whether `start` follows all accesses of the former owner of a tensor's bytes."""
        for cell in self.formers[storage]:
            others = self.readers[cell] or self.writers[cell]  # which the readers follow
            if others is None:
                continue
            for last in (others,) if isinstance(others, tuple) else others.values():
                if not self.follows(start, last):
                    return False
        return True

    def follows(self, start: Start, last: Start) -> bool:
        """Return whether `last` is certainly complete at `start`, or is the same instruction."""
        line, position, clock, _ = start
        other_line, earlier, _, _ = last
        if start is last or clock[other_line] >= earlier:
            return True
        if line == other_line and self.in_order[line]:
            return earlier <= position
        if self.core.clocks:
            self.core.complete_clocks()
        return clock[other_line] >= earlier


def _with(others: dict[int, Start] | Start, start: Start) -> dict[int, Start]:
    """Add a reader, keeping the last of each stream, which may have reordered reads."""
    readers = {others[0]: others} if isinstance(others, tuple) else others
    line = start[0]
    if line not in readers or readers[line][1] < start[1]:
        readers[line] = start
    return readers


# ---- The owner of each byte of SBUF and PSUM ----------------------------------------------------
# A tensor that takes over bytes must wait for all accesses of their former owner.

Segment = int  # a piece of the bytes of a band of partitions, numbered over both memories


class Tenant:
    """A tensor, its last access in each stream, and the accesses that it must wait for."""

    __slots__ = ("needed", "resident", "segments", "tensor", "touched")

    def __init__(self, tensor: int, segments: Sequence[Segment]) -> None:
        self.tensor = tensor
        self.segments = segments
        self.resident = False
        self.touched: list[Start] = []
        self.needed: tuple[Start, ...] = ()


class Tenancy:
    """The owners of all bytes. `hands` tells whether any byte changes hands."""

    def __init__(self, storages: Sequence[Storage], ledger: Ledger) -> None:
        self.follows = ledger.follows
        segments = _segments(storages)
        total = sum(map(len, segments.values()))
        self.hands = total > len({piece for pieces in segments.values() for piece in pieces})
        self.tenants = {tensor: Tenant(tensor, pieces_of) for tensor, pieces_of in segments.items()}
        self.owner: dict[Segment, Tenant] = {}
        self.former: dict[int, int] = {}  # by tensor

    def note(self, start: Start, touches: Touches) -> Sequence[int]:
        """Record the accesses of an instruction.

        Return those, by index, to bytes that a former owner may still use.
        """
        late: Sequence[int] = ()
        tenants, clock = self.tenants, start[2]
        for index, (_, _, storage) in enumerate(touches):
            tenant = tenants.get(storage)
            if tenant is None:  # in HBM, or state
                continue
            if not tenant.resident:
                self._move_in(tenant)
            touched = tenant.touched
            if not touched or touched[-1] is not start:
                _touch(touched, start)
            for last in tenant.needed:
                if clock[last[0]] < last[1] and not self.follows(start, last):
                    late = (*late, index)
                    break
        return late

    def _move_in(self, tenant: Tenant) -> None:
        """Give a tensor its bytes.

        Its former waits still count, since another tensor has owned the bytes since.
        """
        needed = {last[0]: last for last in tenant.needed}
        owners, formers = self.owner, {tenant}
        for segment in tenant.segments:
            owner = owners.get(segment, tenant)
            owners[segment] = tenant
            if owner not in formers:
                formers.add(owner)
                _inherit(owner, needed)
                self.former[tenant.tensor] = owner.tensor
        tenant.resident = True
        tenant.needed = tuple(needed.values())


def _touch(touched: list[Start], start: Start) -> None:
    """Keep the last access of each stream."""
    for at, before in enumerate(touched):
        if before[0] == start[0]:
            if before[1] < start[1]:  # a stream may have reordered reads
                touched[at] = start
            return
    touched.append(start)


def _inherit(owner: Tenant, needed: dict[int, Start]) -> None:
    """Add the last access of a former owner in each stream."""
    owner.resident = False
    for last in owner.touched:
        line = last[0]
        if line not in needed or needed[line][1] < last[1]:
            needed[line] = last


def _segments(storages: Sequence[Storage]) -> dict[int, Sequence[Segment]]:
    """Return each tensor's bytes, cut at the ends of all tensors, in each band that it covers."""
    starts = sorted({storage.partition for storage in storages})
    sides: dict[str, set[int]] = {storage.memory: set() for storage in storages}
    for _, memory, _, byte, _, size in storages:
        sides[memory].add(byte)
        sides[memory].add(byte + size)
    index, count = {}, 0
    for memory, cuts in sides.items():
        index[memory] = {byte: at for at, byte in enumerate(sorted(cuts), count)}
        count += len(cuts)
    segments: dict[int, Sequence[Segment]] = {}
    for key, memory, partition, byte, partitions, size in storages:
        offsets = index[memory]
        first, end = offsets[byte], offsets[byte + size]
        if len(starts) == 1:
            segments[key] = range(first, end)
            continue
        rows = bands(starts, partition, partitions)
        segments[key] = [row * count + piece for row in rows for piece in range(first, end)]
    return segments


# ------------------------------------------------------------------------------------------------
# Maps instructions to those of the placed program, in which allocate may have moved them.

Path = tuple[int, ...]
Waiting = dict[tuple[object, ...], deque[int]]


def moved(lowered: Body, placed: Body) -> Mapping[int, int] | list[Finding] | None:
    """Return the numbers in `placed` of the instructions of `lowered`; None if they are the same.

    An instruction that differs in more than its number and its place within its loop is a finding.
    Equal instructions are matched in order.
    """
    if lowered is placed:
        return None
    waiting: Waiting = defaultdict(deque)
    for instruction, path in _flat(placed, ()):
        waiting[_key(instruction, path)].append(instruction.number)
    numbers, findings = {}, []
    for instruction, path in _flat(lowered, ()):
        candidates = waiting.get(_key(instruction, path))
        if candidates:
            numbers[instruction.number] = candidates.popleft()
        else:
            text = f"{instruction.row.name} #{instruction.number} is not in the placed program"
            findings.append(Finding("once", text, instruction.at))
    if any(waiting.values()):
        findings.append(Finding("once", "the placed program has additional instructions"))
    return findings or numbers


def _key(instruction: Instruction, path: Path) -> tuple[object, ...]:
    """Return a key that is equal for equal instructions; lower interns patterns."""
    operands = tuple(id(o) if isinstance(o, tuple) else repr(o) for o in instruction.operands)
    origin = (
        instruction.engine,
        id(instruction.at),
        instruction.name,
        len(instruction.after),
        instruction.pinned,
    )
    return (instruction.row, id(instruction.attributes), operands, path, *origin)


def _flat(body: Body, path: Path) -> Iterator[tuple[Instruction, Path]]:
    for item in body:
        if isinstance(item, Instruction):
            yield item, path
        else:
            yield from _flat(item.body, (*path, item.number))


# ---- A schedule's streams in the form of the proofs; checks each instruction's place ------------


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


# --------------------------------------------------------------------------------------------------


def prove_order(lowered: Program, schedule: Schedule, readings: Sequence[Reading]) -> list[Finding]:
    """Return what is wrong with `schedule`, a schedule of `lowered`; empty means proven.

    `readings` are the accesses of `lowered`. The premises of later proofs are proven first; if they
    fail, only their findings are returned.
    """
    placed = schedule.program
    lines, findings = read_streams(schedule)
    numbers = [moved(old, new) for old, new in zip(lowered.cores, placed.cores, strict=True)]
    findings += [finding for moves in numbers if isinstance(moves, list) for finding in moves]
    run = AbstractRun(lines)
    if findings := findings or list(_shared(run.cores)):
        return findings
    stuck = run.run()
    if findings := [*_unbalanced(run.cores), *_stuck(stuck, placed), *_mismatched(run)]:
        return findings
    del lines, stuck
    for core in run.cores:
        core.forget_items()
    for number, core in enumerate(run.cores):
        numbering = numbers[number]
        if not isinstance(numbering, list):
            reading, body = readings[number], lowered.cores[number]
            places = reading.places(placed)
            is_straight = numbering is None and Loop not in set(map(type, body))
            walk = _Walk(core, reading, numbering, places, is_straight)
            followed = places.shared if is_straight else places.tenants
            tenancy = Tenancy(places.storages(followed), walk.ledger)
            if numbering is None:  # one walk for both orders
                walk.tenancy = tenancy if tenancy.hands else None
            elif tenancy.hands:
                findings += _taken_over(tenancy, placed, core, reading)
            walk.walk(body)
            findings += walk.findings
    return list(dict.fromkeys(findings))


def _shared(cores: Sequence[Core]) -> Iterator[Finding]:
    for core in cores:
        for semaphore, first, second in core.shared():
            text = f"core {core.number}: semaphore {semaphore} is shared by {first.name} and "
            yield Finding("semaphore", text + second.name)


def _unbalanced(cores: Sequence[Core]) -> Iterator[Finding]:
    for core in cores:
        for semaphore, loop in core.unbalanced.items():
            text = f"core {core.number}: loop {loop} changes the count of semaphore {semaphore}"
            yield Finding("semaphore", text)


def _stuck(runners: Sequence[Runner], program: Program) -> Iterator[Finding]:
    for runner in runners:
        body = program.cores[runner.core.number]
        number = runner.next.key if runner.next is not None else -1
        at = next((i.at for i in instructions(body) if i.number == number), None)
        text = f"stream {runner.line.name} waits for a signal that never comes"
        yield Finding("deadlock", text, at)


def _mismatched(run: AbstractRun) -> Iterator[Finding]:
    for first, second in run.mismatches:
        yield Finding("deadlock", f"one core reaches {first.name}, another to {second.name}")


class _Walk:
    """A walk over the program of one core in its own order; loop bodies are walked twice.

    `numbers` maps the program's instructions to those of the schedule. With `in_turn`, the ledger
    also follows the owners of the places that share no byte with another place.
    """

    def __init__(
        self,
        core: Core,
        reading: Reading,
        numbers: Mapping[int, int] | None,
        places: Places,
        in_turn: bool,
    ) -> None:
        self.core = core
        self.reading = reading
        self.numbers = numbers
        self.places = places
        for decisions in core.decisions.values():
            for _, registers in decisions:
                for register in registers:
                    reading.register(register, READ)  # reserves the register's cell in the ledger
        # The cells of each tensor's former owner, in places that share no bytes: without loops, the
        # tensors of a place own it in the order of their first accesses.
        formers: dict[int, Sequence[int]] = {}
        for tenants in places.exclusive() if in_turn else ():
            formers.update(zip(tenants[1:], map(reading.cells.__getitem__, tenants), strict=False))
        self.ledger = Ledger(reading.count, core, formers, core.is_straight)
        self.findings: list[Finding] = []
        self.latest: dict[int, Start] = {}  # by instruction
        self.pinned: tuple[int, Start | None] = (0, None)
        self.tenancy: Tenancy | None = None
        self.has_requests = any(i.after or i.pinned for i in instructions(reading.body))

    def walk(self, body: Body, execution: int = 0) -> None:
        numbers, touched = self.numbers, self.reading.touches
        started = self.core.starts[execution] if execution < len(self.core.starts) else {}
        note, tenancy = self.ledger.note, self.tenancy
        for item in body:
            if isinstance(item, Loop):
                self.loop(item, execution)
                continue
            number = item.number
            start = started[number if numbers is None else numbers[number]]
            touches = touched[number]
            missed = note(start, touches)
            late = tenancy.note(start, touches) if tenancy is not None else ()
            if missed or late:
                self.conflicts(item, missed, late)
            if self.has_requests:
                if item.after:
                    self.check_user(item, start)
                if item.pinned or self.pinned[0]:
                    self.check_pin(item, start)
                self.latest[item.number] = start

    def loop(self, loop: Loop, execution: int) -> None:
        self.decide(loop, execution, 0)
        for iteration in range(ITERATIONS):
            self.walk(loop.body, execution * ITERATIONS + iteration)
            self.decide(loop, execution, iteration + 1)

    def decide(self, loop: Loop, execution: int, iteration: int) -> None:
        """Record that every stream reads the registers that decide whether the loop continues."""
        for start, registers in self.core.decisions.get((loop.number, execution, iteration), ()):
            for register in registers:
                if self.ledger.note(start, [self.reading.register(register, READ)]):
                    name = self.core.lines[start[0]].name
                    text = f"stream {name} decides about loop {loop.number} by register {register}"
                    text += " without waiting for the instruction that sets it"
                    self.findings.append(Finding("register", text, loop.at))

    def conflicts(
        self,
        instruction: Instruction,
        missed: Mapping[int, Start | None],
        late: Collection[int],
    ) -> None:
        """Report the accesses of an instruction, by index, that come too early."""
        for index, (cells, _, storage) in enumerate(self.reading.touches[instruction.number]):
            if index in missed and missed[index] is None:
                former = self.places.former(storage)
                self.findings.append(_still_in_use(instruction, storage, former, self.reading))
            elif index in missed:
                rule, name = self.reading.what(cells, storage)
                text = f"{instruction.row.name} conflicts with an access to {name} that it does not"
                self.findings.append(Finding(rule, f"{text} wait for", instruction.at))
            if index in late and self.tenancy is not None:
                former = self.tenancy.former[storage]
                self.findings.append(_still_in_use(instruction, storage, former, self.reading))

    def check_user(self, instruction: Instruction, start: Start) -> None:
        for source in instruction.after:
            last = self.latest.get(source)
            if last is None or not self.ledger.follows(start, last):
                text = f"{instruction.row.name} does not wait for #{source}, as the kernel requests"
                self.findings.append(Finding("user", text, instruction.at))

    def check_pin(self, instruction: Instruction, start: Start) -> None:
        region, last = self.pinned
        if (
            region == instruction.pinned
            and last is not None
            and not self.ledger.follows(start, last)
        ):
            text = f"{instruction.row.name} does not wait for the instruction before it in"
            self.findings.append(Finding("pin", f"{text} a no_reorder region", instruction.at))
        self.pinned = (instruction.pinned, start)


def _taken_over(
    tenancy: Tenancy, placed: Program, core: Core, reading: Reading
) -> Iterator[Finding]:
    """Yield accesses to bytes that their former owner may still use, in the order of `placed`."""
    body, starts = placed.cores[core.number], core.starts
    touches = reading_of(body, placed.target, reading).touches
    for instruction, execution in _as_run(body):
        instruction_touches = touches[instruction.number]
        for index in tenancy.note(starts[execution][instruction.number], instruction_touches):
            storage = instruction_touches[index][2]
            yield _still_in_use(instruction, storage, tenancy.former[storage], reading)


def _still_in_use(instruction: Instruction, storage: int, former: int, reading: Reading) -> Finding:
    name, other = reading.tensors[storage].name, reading.tensors[former].name
    text = f"{instruction.row.name}: `{name}` takes over bytes of `{other}`, which are still in use"
    return Finding("bytes", text, instruction.at)


def _as_run(body: Body, execution: int = 0) -> Iterator[tuple[Instruction, int]]:
    """Yield each instruction with the index of its execution; loop bodies run twice."""
    for item in body:
        if isinstance(item, Instruction):
            yield item, execution
        else:
            for iteration in range(ITERATIONS):
                yield from _as_run(item.body, execution * ITERATIONS + iteration)


# ---- Unordered conflicts of a file, which has streams but no program order ----------------------
# The order in which the streams happen to run takes the place of program order.


class Unordered(NamedTuple):
    """`start` does not wait for `last`, or for a former owner of its bytes (None)."""

    start: Start
    last: Start | None
    what: str


def unordered(core: Core, reading: Reading, storages: Sequence[Storage]) -> Iterator[Unordered]:
    """Yield unordered pairs of accesses of a core whose streams have been run."""
    for event in core.sequence:
        if isinstance(event, Decision):
            for register in event.registers:
                reading.register(register, READ)
    ledger = Ledger(reading.count, core)
    tenancy = Tenancy(storages, ledger)
    for event in core.sequence:
        if isinstance(event, Decision):
            start = event.start
            touches: TouchTuple = tuple([reading.register(r, READ) for r in event.registers])
        else:
            start, touches = event, reading.touches[event[3]]
        unordered_after = ledger.note(start, touches)
        late = tenancy.note(start, touches) if tenancy.hands else ()
        if not unordered_after and not late:
            continue
        for index, (cells, _, storage) in enumerate(touches):
            if index in unordered_after:
                yield Unordered(start, unordered_after[index], reading.what(cells, storage)[1])
            if index in late:
                former = reading.name(tenancy.former[storage])
                yield Unordered(start, None, f"the bytes of `{former}`")
