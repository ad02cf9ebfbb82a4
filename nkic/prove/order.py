"""Proof of a schedule: conflicting accesses are ordered, and in program order.

The streams are first run abstractly (`run`), which gives each instruction its vector clock. Then
the program is walked in its own order: the clock of each access must include the last conflicting
accesses (`ledger`). So a pair in the wrong order is found just like an unordered pair. Changes of
ownership of bytes are checked in the order of the placed program, in which allocate may have
postponed writes: by the ledger in places whose tensors take turns, as `addresses` has proven, and
otherwise byte by byte (`tenancy`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from nkic.ir.program import Body, Instruction, Loop, Program, instructions
from nkic.ir.schedule import Schedule
from nkic.prove.effects import Reading, reading_of
from nkic.prove.ledger import Ledger
from nkic.prove.lines import read_streams
from nkic.prove.model import READ, Finding
from nkic.prove.moved import moved
from nkic.prove.places import Places
from nkic.prove.run import ITERATIONS, AbstractRun, Core, Runner, Start
from nkic.prove.tenancy import Tenancy


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
        formers = _formers(places, reading) if in_turn else None
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
                self.check_requests(item, start)

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

    def check_requests(self, instruction: Instruction, start: Start) -> None:
        """Check the orders that the kernel itself requests."""
        if instruction.after:
            self.check_user(instruction, start)
        if instruction.pinned or self.pinned[0]:
            self.check_pin(instruction, start)
        self.latest[instruction.number] = start

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


def _formers(places: Places, reading: Reading) -> dict[int, Sequence[int]]:
    """Return the cells of each tensor's former owner, in places that share no bytes.

    Without loops, the tensors of a place own it in the order of their first accesses.
    """
    formers: dict[int, Sequence[int]] = {}
    for tenants in places.exclusive():
        formers.update(zip(tenants[1:], map(reading.cells.__getitem__, tenants), strict=False))
    return formers


def _as_run(body: Body, execution: int = 0) -> Iterator[tuple[Instruction, int]]:
    """Yield each instruction with the index of its execution; loop bodies run twice."""
    for item in body:
        if isinstance(item, Instruction):
            yield item, execution
        else:
            for iteration in range(ITERATIONS):
                yield from _as_run(item.body, execution * ITERATIONS + iteration)
