"""Reads of uninitialised bytes in SBUF or PSUM, found in the lowered program.

The runner finds every such read (NKI0901); this finds those that are certain before there is data.
One that the runner is certain to refuse is an error by default: the instruction runs, and either
nothing that it reads was written, or all of its result depends on each byte.

It is conservative about inexact patterns: a write initialises everything it may touch, and a read
is checked only if it touches every byte of its box.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import prod
from typing import Any

from nkic.base.diagnostics import Label, Reporter
from nkic.base.source import CallChain, Span
from nkic.compiler.check import declaration
from nkic.machine.operands import Access, Depends, Facts, Register, Violation
from nkic.machine.patterns import run
from nkic.machine.rules import (
    History,
    Mismatch,
    Outline,
    Rectangle,
    Round,
    Step,
    Stop,
    bank_problem,
    compare,
    is_matmul,
    restricts_accumulation,
)
from nkic.machine.rules import Write as PsumWrite
from nkic.machine.targets import PSUM_BANK_BYTES, Buffer, Engine
from nkic.program.effects import Accesses, accesses_of, registers_of, state_effects
from nkic.program.overlap import MAX_CELLS, Box, Cells, box
from nkic.program.program import (
    AccessPattern,
    Body,
    Instruction,
    Item,
    Loop,
    Program,
    Tensor,
    View,
    Work,
    instructions,
)

# ---- Checks of PSUM once engines and addresses are decided --------------------------------------
# A matmul's result must be within one bank, and must not be accumulated onto data that another
# instruction wrote.


def find_banks(placed: Program, report: Reporter) -> None:
    """Report results of the tensor engine that cross banks at their final addresses."""
    seen: set[tuple[int, int]] = set()  # by identity: loops repeat one expression
    for body in placed.cores:
        for instruction in instructions(body):
            if not is_matmul(instruction.engine):
                continue
            for rule, operand in zip(instruction.row.operands, instruction.operands, strict=True):
                key = id(operand), id(instruction.at)
                if rule.one_bank and type(operand) is AccessPattern and key not in seen:
                    seen.add(key)
                    if not operand.dynamic:
                        _bank(instruction, rule.name, operand, placed, report)


def _bank(
    instruction: Instruction, name: str, dst: AccessPattern, placed: Program, report: Reporter
) -> None:
    tensor = dst.tensor
    low, high = dst.extent()
    at = placed.addresses[tensor.number].byte
    text = bank_problem(instruction.row, name, at + low, at + high, placed.target)
    if text:
        sizes = ", ".join(map(str, tensor.shape))
        what = f"`{tensor.name}` is {tensor.dtype.name}[{sizes}], from byte {at:,} on"
        report.error(
            "psum-bank",
            f"{instruction.row.name}: {text}",
            instruction.at,
            labels=[Label(tensor.at.primary, what)],
            help=f"write a part that is within one bank: `{tensor.name}` has the columns of a "
            f"bank at multiples of {PSUM_BANK_BYTES // dst.dtype.size}",
        )


def find_foreign_accumulation(lowered: Program, report: Reporter) -> None:
    """Warn of matmuls that accumulate onto data that another instruction wrote."""
    if restricts_accumulation(lowered.target) and any(
        t.buffer is Buffer.PSUM for t in lowered.tensors
    ):
        for body in lowered.cores:
            _follow(body, lowered, report)


def _follow(body: Body, lowered: Program, report: Reporter) -> None:
    """Walk a body in program order, with one iteration of each device loop."""
    accesses = accesses_of(body, lowered.target)
    foreign = _written_by_others(body, accesses)
    if not foreign:
        return
    histories: dict[int, History[Instruction]] = defaultdict(History)
    for instruction in instructions(body):
        for pattern, reads, writes in accesses.touches(instruction):
            tensor = pattern.tensor
            if not writes or tensor.number not in foreign:
                continue
            area, history = _area(pattern), histories[tensor.number]
            if is_matmul(instruction.engine):
                writer = _foreign_writer(history, pattern, area) if reads else None
                if writer is not None:
                    _warn(instruction, writer, tensor.name, lowered, report)
                history.note(PsumWrite(area, None))
            elif pattern.dynamic is None and _is_dense(pattern, area):
                history.note(PsumWrite(area, instruction))


def _written_by_others(body: Body, accesses: Accesses) -> set[int]:
    """Return the numbers of the PSUM tensors that an instruction other than a matmul writes."""
    found: set[int] = set()
    others: set[Work] = set()  # kinds of work that write no PSUM, as most do
    for instruction in instructions(body):
        work = instruction.work
        if work in others or is_matmul(instruction.engine):
            continue
        written = accesses.written_by(instruction)
        numbers = [p.tensor.number for p in written if p.tensor.buffer is Buffer.PSUM]
        found.update(numbers)
        if not numbers and work is not None:
            others.add(work)
    return found


def _area(pattern: AccessPattern) -> Rectangle:
    """Return all that a pattern may access: whole partitions if its offset is dynamic."""
    low, high = (0, pattern.tensor.bytes) if pattern.dynamic else pattern.extent()
    return Rectangle(pattern.start, pattern.start + pattern.partitions, low, high)


def _is_dense(pattern: AccessPattern, area: Rectangle) -> bool:
    return run(pattern.dims) * pattern.dtype.size == area.right - area.left


def _foreign_writer(
    history: History[Instruction], pattern: AccessPattern, area: Rectangle
) -> Instruction | None:
    """Return an instruction other than a matmul that wrote the destination, or None.

    For a dynamic offset, only if such instructions wrote all of the tensor; `nki-run` knows the
    offset.
    """
    if pattern.dynamic is not None:
        return history.foreign_writer_everywhere(area)
    return next(iter(history.foreign_writers(area)), None)


def _warn(
    instruction: Instruction, writer: Instruction, name: str, lowered: Program, report: Reporter
) -> None:
    report.warning(
        "accumulates-onto-data",
        f"{instruction.row.name} accumulates onto what {writer.row.name} wrote into `{name}`, "
        "which is undefined "
        f"on {lowered.target.name}: an accumulation must begin with a matmul",
        instruction.at,
        labels=[Label(writer.at.primary, f"{writer.row.name} writes it here")],
        help="let the first matmul overwrite with accumulate=False; add the former values "
        "with nisa.tensor_tensor afterwards",
    )


# ------------------------------------------------------------------------------------------------
# Check that the cores reach the same rendezvous in the same order, with matching operands.
# A core deadlocks if it waits at a barrier or a sendrecv for a partner that never arrives or that
# reaches another one first. The cores' programs are known, so this is found at compile time.

SLUG = "core-meeting"


def check_rendezvous(program: Program, report: Reporter) -> None:
    """Report the first rendezvous that not all cores of `program` reach."""

    def compare_operands(stops: Sequence[Stop[Item]]) -> Violation | None:
        items = [stop.item for stop in stops if isinstance(stop.item, Instruction)]
        facts = [item.facts(program.target) for item in items]
        rule = items[0].row.rendezvous_rule
        return (rule(facts) if rule else None) or _engines(items, facts) or _tensors(items)

    if mismatch := compare([_outline(body) for body in program.cores], compare_operands):
        _complain(mismatch, report)


def _outline(body: Body) -> Outline[Item]:
    steps: list[Step[Item]] = []
    for item in body:
        if isinstance(item, Instruction):
            if item.row.is_rendezvous:
                steps.append(Stop[Item](item, item.row))
        elif inside := _outline(item.body):
            steps.append(Round[Item](item, item.trips, inside))
    return tuple(steps)


def _complain(mismatch: Mismatch[Item], report: Reporter) -> None:
    at = mismatch.first[1].item.at
    advice = "let both cores reach the same rendezvous in the same order"
    if mismatch.violation is not None:
        advice = mismatch.violation.help
    report.error(SLUG, mismatch.text, at, labels=_others(mismatch), help=advice)


def _others(mismatch: Mismatch[Item]) -> list[Label]:
    if (core := mismatch.without) is not None:
        before = mismatch.last[core]
        return [_label(core, "was last at", before)] if before else []
    return [_label(1, "is at", step) for step in mismatch.steps[1:] if step]


def _label(core: int, what: str, step: Step[Item]) -> Label:
    span: Span = step.item.at.primary
    return Label(span, f"core {core} {what} {step.name}")


def _engines(items: Sequence[Instruction], facts: Sequence[Facts]) -> Violation | None:
    pairs = zip(items, facts, strict=True)
    names = [(item.engine or item.row.choose(fact)).value for item, fact in pairs]
    if len(set(names)) == 1:
        return None
    text = (
        f"{items[0].row.name}: runs on the {names[0]} engine on core 0 and on the {names[-1]} "
        "engine on core 1"
    )
    return Violation(SLUG, text, help="pass the same `engine` on both cores")


def _tensors(items: Sequence[Instruction]) -> Violation | None:
    first = items[0]
    for index, operand in enumerate(first.operands):
        rule = first.row.operands[index]
        if not isinstance(operand, View | AccessPattern) or rule.access is not Access.ORDER:
            continue
        other = items[-1].operands[index]
        if isinstance(other, View | AccessPattern) and other.tensor is not operand.tensor:
            text = (
                f"{first.row.name}: core 0 synchronises on `{operand.tensor.name}` and core 1 on "
                f"`{other.tensor.name}`"
            )
            return Violation(SLUG, text, help="pass the same tensor on both cores")
    return None


# ---- Reads of registers that nothing has set ----------------------------------------------------


def find_unset_registers(program: Program, report: Reporter) -> None:
    """Report reads of registers that no earlier instruction has set, not even in a loop.

    The runner finds the others: those whose setter is in a loop that has no iterations.
    """
    for body in program.cores:
        if accesses_of(body, program.target).stateful:
            _Finder(report).body(body)


class _Finder:
    def __init__(self, report: Reporter) -> None:
        self.report = report
        self.set: set[int] = set()
        self.made: dict[int, CallChain] = {}  # registers without an initial value

    def body(self, body: Body) -> None:
        for item in body:
            if isinstance(item, Instruction):
                self.instruction(item)
                continue
            used = (item.start, item.stop, item.condition)
            self.read([r.number for r in used if isinstance(r, Register)], item.at, "the loop")
            self.body(item.body)

    def instruction(self, instruction: Instruction) -> None:
        registers = registers_of(instruction)
        reads = [number for number, access in registers if access.reads]
        self.read(reads, instruction.at, instruction.row.name)
        # A register is made without a value if it is the only operand that is given. A row without
        # other operands computes the value itself, such as a rank's number.
        given = sum(operand is not None for operand in instruction.operands)
        has_value = not given == 1 < len(instruction.row.operands)
        for number, access in registers:
            if access is Access.WRITE and not has_value:
                self.made[number] = instruction.at
            elif access.writes:
                self.set.add(number)

    def read(self, numbers: Iterable[int], at: CallChain, what: str) -> None:
        for number in numbers:
            if number in self.set or number not in self.made:
                continue
            made = Label(self.made[number].primary, "the register is created here, without a value")
            self.report.warning(
                "unset-register",
                f"{what} reads a register that nothing has set",
                at,
                labels=[made],
                help="load it first with nisa.register_load, or pass nisa.register_alloc a value",
            )


# ---- The part of a box that other boxes do not cover --------------------------------------------


def first_hole(area: Box, boxes: Iterable[Box], size: int) -> str | None:
    """Return the first uncovered part of `area` as a slice, or None if all is covered.

    The innermost axis of boxes is in bytes, `size` per element.
    """
    covering = list(boxes)
    cells = Cells([area, *covering])
    if cells.count == 1:
        return None if covering else _slice(area, size)
    covered = {cell for box in covering for cell in cells[box]}
    missing = next((cell for cell in cells[area] if cell not in covered), None)
    return None if missing is None else _slice(tuple(_ranges(cells, missing)), size)


def _slice(ranges: Box, size: int) -> str:
    low, high = ranges[-1]
    shown = (*ranges[:-1], (low // size, -(-high // size)))  # bytes to elements
    return f"[{', '.join(f'{low}:{high}' for low, high in shown)}]"


def _ranges(cells: Cells, number: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of a cell, outermost axis first."""
    for axis, cuts in enumerate(cells.cuts):
        at = number // prod(cells.sizes[axis + 1 :]) % cells.sizes[axis]
        yield cuts[at], cuts[at + 1]


# --------------------------------------------------------------------------------------------------

# Kernels apply these to partly initialised tiles and ignore the affected rows of the result.
_PARTIAL_INPUTS = (Depends.PRODUCT, Depends.TRANSPOSED, Depends.FIRST_OF_CORE)
# With these, whatever is uninitialised in what is read is so somewhere in each result.
_SPREADS = (Depends.ELEMENTWISE, Depends.BY_PARTITION)
MAX_BOXES = 256  # boxes; tensors written in more pieces are not checked


def find_unwritten(lowered: Program, report: Reporter) -> None:
    """Warn of the first uninitialised read of each tensor."""
    for body in lowered.cores:
        accesses = accesses_of(body, lowered.target)
        # Not those with one pattern, whose first access is a write: it comes before all reads.
        doubtful = {
            tensor.number
            for tensor in accesses.first
            if tensor.on_chip and (tensor in accesses.parts or tensor in accesses.read_first)
        }
        if doubtful:
            finder = _UnwrittenFinder(lowered, body, accesses, doubtful)
            finder.follow()
            for hole in finder.holes:
                hole.complain(report)


def may_not_run(body: Body) -> set[int]:
    """Return the numbers of the instructions in device loops that may have no iterations."""
    return {
        instruction.number
        for item in body
        if isinstance(item, Loop)
        for instruction in (instructions(item.body) if not item.trips else ())
    } | {number for item in body if isinstance(item, Loop) for number in may_not_run(item.body)}


@dataclass(eq=False)
class _Hole:
    """Something uninitialised that an instruction reads."""

    instruction: Instruction
    tensor: Tensor
    part: str
    is_fault: bool

    def complain(self, report: Reporter) -> None:
        help = "initialise it first, for example with nisa.memset, or read a smaller part"
        if self.instruction.row.accumulates and self.tensor.buffer is Buffer.PSUM:
            help = "let the first matmul overwrite it: accumulate=False (Beta 1: make it nl.zeros)"
        report.warning(
            "read-never-written" if self.is_fault else "read-unwritten",
            f"{self.instruction.row.name} reads {self.part}`{self.tensor.name}`, which is "
            "uninitialised",
            self.instruction.at,
            labels=[declaration(self.tensor)],
            help=help,
        )


@dataclass
class _UnwrittenFinder:
    lowered: Program
    body: Body
    accesses: Accesses
    doubtful: set[int]  # tensors neither fully written nor reported
    written: dict[int, dict[Box, None]] = field(default_factory=dict)
    holes: list[_Hole] = field(default_factory=list)
    # By tensor: boxes in each of which some element, it is not known which, is uninitialised.
    spoilt: dict[int, dict[Box, set[_Hole]]] = field(default_factory=dict)

    def follow(self) -> None:
        for item in self.body:
            if isinstance(item, Instruction):
                self.instruction(item, is_once=True)
            else:
                for instruction in instructions(item.body):
                    self.instruction(instruction, is_once=False)
        for result in self.lowered.outputs:
            _certain(self.spoilt.get(result.tensor.number, {}).values())

    def instruction(self, instruction: Instruction, is_once: bool) -> None:
        doubtful = self.doubtful
        operands, uses = self.accesses.of(instruction)
        for index, reads, writes in uses:  # reads come first
            pattern = operands[index]
            if type(pattern) is not AccessPattern or pattern.tensor.number not in doubtful:
                continue
            if reads:
                selects, places = instruction.row.selects, instruction.row.operand_index
                self.read(instruction, pattern, index in [places[name] for name in selects])
            if writes:
                self.write(pattern.tensor, box(pattern))
        if self.spoilt:
            self.spread(instruction, is_once)

    def write(self, tensor: Tensor, area: Box) -> None:
        if area == _whole(tensor.shape, tensor.dtype.size):
            self.doubtful.discard(tensor.number)
            return
        boxes = self.written.setdefault(tensor.number, {})
        boxes[area] = None
        if len(boxes) > MAX_BOXES:
            self.doubtful.discard(tensor.number)

    def read(self, instruction: Instruction, pattern: AccessPattern, may_skip: bool) -> None:
        """`may_skip`: the instruction may select nothing of it."""
        tensor, area = pattern.tensor, box(pattern)
        boxes = self.written.get(tensor.number, {})
        if area in boxes or not is_exact(pattern, area):
            return
        if boxes and instruction.row.depends in _PARTIAL_INPUTS:
            return
        hole = first_hole(area, boxes, tensor.dtype.size)
        if hole:
            self.doubtful.discard(tensor.number)
            is_sure = not may_skip and instruction.number not in self.unsure
            is_fault = is_sure and not _meets(area, boxes)
            part = f"{hole} of " if boxes else ""
            self.holes.append(_Hole(instruction, tensor, part, is_fault))
            self.spoilt[tensor.number] = {area: {self.holes[-1]}}

    def spread(self, instruction: Instruction, is_once: bool) -> None:
        """Follow what is uninitialised from what an instruction reads to what it writes.

        A later iteration of a loop may overwrite it, so it does not leave the loop.
        """
        touches, depends = self.accesses.touches(instruction), instruction.row.depends
        holes = {
            hole
            for pattern, reads, _ in touches
            if reads and pattern.tensor.number in self.spoilt
            for area, found in self.spoilt[pattern.tensor.number].items()
            if is_exact(pattern, box(pattern)) and _contains(box(pattern), area)
            for hole in found
        }
        # The runner does not follow it through transfers with run-time offsets.
        is_whole = depends is Depends.WHOLLY or any(p.dynamic is not None for p, *_ in touches)
        if is_whole and instruction.number not in self.unsure:
            _certain([holes])
        row = instruction.row
        is_followed = is_once and depends in _SPREADS and not (row.is_rendezvous or row.selects)
        for pattern, _, writes in touches:
            if not writes:
                continue
            number, area = pattern.tensor.number, box(pattern)
            spoilt = self.spoilt.get(number, {})
            for other in [other for other in spoilt if _meets(other, (area,))]:
                del spoilt[other]
            if not (holes and is_followed) or len(spoilt) >= MAX_BOXES:
                continue
            others = self.written_elsewhere.get(number, ())
            if len(others) <= MAX_BOXES and not _meets(area, others):
                self.spoilt.setdefault(number, {})[area] = holes

    @cached_property
    def unsure(self) -> set[int]:
        """The instructions that may not run."""
        return may_not_run(self.body)

    @cached_property
    def written_elsewhere(self) -> dict[int, set[Box]]:
        """What the other cores write, by tensor."""
        found: dict[int, set[Box]] = defaultdict(set)
        for body in self.lowered.cores:
            if body is not self.body:
                accesses = accesses_of(body, self.lowered.target)
                for instruction in instructions(body):
                    for pattern in accesses.written_by(instruction):
                        found[pattern.tensor.number].add(box(pattern))
        return found


def _certain(found: Iterable[Iterable[_Hole]]) -> None:
    for holes in found:
        for hole in holes:
            hole.is_fault = True


def _contains(area: Box, part: Box) -> bool:
    return all(
        low <= low2 and high2 <= high for (low, high), (low2, high2) in zip(area, part, strict=True)
    )


def _meets(area: Box, boxes: Iterable[Box]) -> bool:
    return any(
        all(low < high2 and low2 < high for (low, high), (low2, high2) in zip(area, b, strict=True))
        for b in boxes
    )


@lru_cache(maxsize=1024)
def _whole(shape: tuple[int, ...], size: int) -> Box:
    return tuple((0, length) for length in (*shape[:-1], shape[-1] * size))


def is_exact(pattern: AccessPattern, area: Box) -> bool:
    if pattern.dynamic is not None:
        return False
    elements = prod(num for step, num in pattern.dims if step) * (pattern.partitions or 1)
    return elements * pattern.dtype.size == prod(high - low for low, high in area)


# ---- Results that nothing reads: work done for nothing, or a sum that is lost -------------------
# A line is reported if this is so for every instruction made of it, since the last iteration of a
# loop, or one caller of a function, often has no use for a result. A matmul that overwrites a sum
# which nothing has read is reported wherever it occurs: it was meant to accumulate.
#
# Constants are not reported: kernels clear tiles that later instructions mostly fill, and tensors
# in HBM by a transfer of such a tile. Nor are instructions of which anything else is used: a second
# result, or registers of the engine. What is in arguments and in shared HBM at the end may be meant
# (NKI0254), and of several cores only memory on chip is looked at, since the others may read what
# is in HBM. What several writes overwrite only together is not found.

Write = tuple[Instruction, AccessPattern]


def find_unread(lowered: Program, report: Reporter) -> None:
    """Warn of results that nothing reads, and of sums that are overwritten."""
    lines: dict[Span, _Unread] = {}
    idle: set[int] = set()  # instructions, by identity
    for body in lowered.cores:
        finder = _UnreadFinder(lowered, body)
        finder.follow(body)
        finder.end()
        for matmul, before, dst in finder.lost.values():
            report.warning(
                "sum-overwritten",
                f"{matmul.row.name} overwrites the sum in `{dst.tensor.name}`, which nothing has "
                "read",
                matmul.at,
                labels=[Label(before.at.primary, f"{before.row.name} writes it here")],
                help="pass accumulate=True (Beta 1: write +=) to add to it, or read the sum first",
            )
        for instruction in instructions(body):
            if instruction.number not in finder.used and (found := finder.unread(instruction)):
                idle.add(id(instruction))
                if not finder.clears(instruction):
                    lines.setdefault(instruction.at.primary, found)
    for body in lowered.cores if lines else ():
        for instruction in instructions(body):
            if id(instruction) not in idle:
                lines.pop(instruction.at.primary, None)
    for unread in lines.values():
        unread.complain(report)


class _Unread:
    """An instruction none of whose results is read, and the instruction that overwrites one."""

    def __init__(self, write: Write, by: Instruction | None) -> None:
        self.instruction, self.pattern = write
        self.by = by

    def complain(self, report: Reporter) -> None:
        instruction, name = self.instruction, self.pattern.tensor.name
        end, labels = "which nothing reads", [declaration(self.pattern.tensor)]
        if self.by is not None:
            end = f"which {self.by.row.name} overwrites before anything has read it"
            labels = [Label(self.by.at.primary, f"{self.by.row.name} overwrites it here")]
        report.warning(
            "result-not-read",
            f"{instruction.row.name} writes `{name}`, {end}",
            instruction.at,
            labels=labels,
            help="use the result, or remove the instruction: it only takes time",
        )


class _UnreadFinder:
    """Follows the writes of one core, cell by cell, to their first reads."""

    def __init__(self, lowered: Program, body: Body) -> None:
        self.target = lowered.target
        self.accesses: Accesses = accesses_of(body, lowered.target)
        self.unsure = may_not_run(body)
        self.inputs = {p.tensor.number for p in lowered.inputs}
        self.body = body
        self.used: set[int] = set()  # instructions of which something was read
        self.by: dict[int, Instruction] = {}  # what overwrites an instruction's result
        # By matmul: it, the matmul whose unread sum it overwrites, and where.
        self.lost: dict[int, tuple[Instruction, Instruction, AccessPattern]] = {}
        self.pending: dict[int, tuple[Write, ...]] = {}  # by cell: writes that nothing has read
        known = {p.tensor.number for p in (*lowered.inputs, *lowered.outputs)}
        self.remains = {  # what is in it at the end may be meant
            tensor.number
            for tensor in self.accesses.first
            if tensor.number in known or tensor.buffer is Buffer.SHARED_HBM
        }
        self.skipped = {
            tensor.number
            for tensor in self.accesses.first
            if (len(lowered.cores) > 1 and not tensor.on_chip)
            or len(self.accesses.cut.get(tensor.number, ())) > MAX_CELLS // 2
        }
        # The cells of the patterns that are followed, by identity.
        parts, cells = self.accesses.parts, self.accesses.cells
        self.cells = {
            id(pattern): cells[id(pattern)]
            for tensor, first in self.accesses.first.items()
            if tensor.number not in self.skipped
            for pattern in parts.get(tensor, (first,))
        }

    def end(self) -> None:
        """Let the caller read what remains."""
        for writes in self.pending.values():
            self.used.update(w.number for w, p in writes if p.tensor.number in self.remains)

    def follow(self, body: Body) -> None:
        """Follow a body in program order, and each device loop twice: iterations follow another."""
        for item in body:
            if isinstance(item, Instruction):
                self._instruction(item)
            else:
                self.follow(item.body)
                self.follow(item.body)

    def _instruction(self, instruction: Instruction) -> None:
        operands, uses = self.accesses.of(instruction)
        pending, cells = self.pending, self.cells
        for index, reads, writes in uses:  # reads come first
            for cell in cells.get(id(operands[index]), ()):
                before = pending.get(cell)
                if reads and before is not None:
                    self.used.update([write.number for write, _ in pending.pop(cell)])
                    before = None
                if not writes:
                    continue
                if before is None:
                    pending[cell] = ((instruction, operands[index]),)  # type: ignore[assignment]
                else:
                    self._write_over(cell, instruction, operands[index], before)

    def _write_over(
        self, cell: int, instruction: Instruction, pattern: Any, before: tuple[Write, ...]
    ) -> None:
        """Record a write where nothing has read the writes before it."""
        write = (instruction, pattern)
        if self._overwrites(instruction, pattern, before):
            for earlier, _ in before:
                self.by.setdefault(earlier.number, instruction)
            if instruction.row.accumulates and before[-1][0].row.accumulates:
                self.lost.setdefault(instruction.number, (instruction, before[-1][0], pattern))
            kept = before if instruction.number in self.unsure else ()
            self.pending[cell] = (*kept, write)
        elif write not in before:
            self.pending[cell] = (*before, write)

    @staticmethod
    def _overwrites(
        instruction: Instruction, pattern: AccessPattern, before: Iterable[Write]
    ) -> bool:
        """Return whether all of the earlier writes is overwritten in the cells they share."""
        if any(type(o) is AccessPattern and o.dynamic is not None for o in instruction.operands):
            return False
        return is_exact(pattern, box(pattern)) or all(p is pattern for _, p in before)

    @cached_property
    def computed(self) -> set[int]:
        """The tensors of which something is more than a constant."""
        found = set(self.inputs)
        for instruction in instructions(self.body):
            touches = self.accesses.touches(instruction)
            if any(touch.reads for touch in touches):
                found.update(touch.pattern.tensor.number for touch in touches if touch.writes)
        return found

    def clears(self, instruction: Instruction) -> bool:
        """Whether the instruction transfers constants."""
        touches = self.accesses.touches(instruction)
        read = {touch.pattern.tensor.number for touch in touches if touch.reads}
        return instruction.engine is Engine.DMA and self.computed.isdisjoint(read)

    def unread(self, instruction: Instruction) -> _Unread | None:
        """Return the instruction as one for nothing, or None if something of it is used."""
        if instruction.row.is_rendezvous:
            return None
        touches = self.accesses.touches(instruction)
        written = [touch.pattern for touch in touches if touch.writes]
        if not written or len(written) == len(touches):
            return None
        if any(pattern.tensor.number in self.skipped for pattern in written):
            return None
        if state_effects(instruction, self.target).writes:
            return None
        is_left = any(write[0] is instruction for left in self.pending.values() for write in left)
        return _Unread(
            (instruction, written[0]), None if is_left else self.by.get(instruction.number)
        )
