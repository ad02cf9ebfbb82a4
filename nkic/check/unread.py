"""Results that nothing reads: work done for nothing, or a sum that is lost.

A line is reported if this is so for every instruction made of it, since the last iteration of a
loop, or one caller of a function, often has no use for a result. A matmul that overwrites a sum
which nothing has read is reported wherever it occurs: it was meant to accumulate.

Constants are not reported: kernels clear tiles that later instructions mostly fill. Nor are
instructions of which anything else is used: a second result, or registers of the engine. Shared
HBM is not looked at, where an output may have been meant (NKI0254), and of several cores only
memory on chip, since the others may read what is in HBM.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from nkic.base.diagnostics import Label, Reporter
from nkic.base.source import Span
from nkic.check.stage import call_labels, declaration
from nkic.check.unwritten import is_exact, may_not_run
from nkic.ir.effects import Accesses, accesses_of, state_effects
from nkic.ir.overlap import MAX_CELLS, box
from nkic.ir.program import Body, Instruction, Program, instructions
from nkic.ir.tensors import AccessPattern, Tensor
from nkic.machine.memory import Buffer

Write = tuple[Instruction, AccessPattern]


def find_unread(lowered: Program, report: Reporter) -> None:
    """Warn of results that nothing reads, and of sums that are overwritten."""
    lines: dict[Span, _Unread] = {}
    idle: set[int] = set()  # instructions, by identity
    for body in lowered.cores:
        finder = _Finder(lowered, body)
        finder.follow(body)
        for matmul, before, dst in finder.lost.values():
            _complain_of_sum(report, matmul, before, dst)
        for instruction in instructions(body):
            if instruction.number not in finder.used and (found := finder.unread(instruction)):
                lines.setdefault(instruction.at.primary, found)
                idle.add(id(instruction))
    for body in lowered.cores if lines else ():
        for instruction in instructions(body):
            if id(instruction) not in idle:
                lines.pop(instruction.at.primary, None)
    for unread in lines.values():
        unread.complain(report)


def _complain_of_sum(
    report: Reporter, matmul: Instruction, before: Instruction, dst: AccessPattern
) -> None:
    report.warning(
        "sum-overwritten",
        f"{matmul.row.name} overwrites the sum in `{dst.tensor.name}`, which nothing has read",
        matmul.at.primary,
        labels=[
            Label(before.at.primary, f"{before.row.name} writes it here"),
            *call_labels(matmul.at),
        ],
        help="pass accumulate=True to add to it, or read the sum first",
    )


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
            instruction.at.primary,
            labels=[*labels, *call_labels(instruction.at)],
            help="use the result, or remove the instruction: it only takes time",
        )


class _Finder:
    """Follows the writes of one core, cell by cell, to their first reads."""

    def __init__(self, lowered: Program, body: Body) -> None:
        self.target = lowered.target
        self.accesses: Accesses = accesses_of(body, lowered.target)
        self.unsure = may_not_run(body)
        self.used: set[int] = set()  # instructions of which something was read
        self.by: dict[int, Instruction] = {}  # what overwrites an instruction's result
        # By matmul: it, the matmul whose unread sum it overwrites, and where.
        self.lost: dict[int, tuple[Instruction, Instruction, AccessPattern]] = {}
        self.pending: dict[int, tuple[Write, ...]] = {}  # by cell: writes that nothing has read
        known = {p.tensor.number for p in (*lowered.inputs, *lowered.outputs)}
        self.skipped = {
            tensor.number
            for tensor in self.accesses.first
            if tensor.number in known
            or tensor.buffer is Buffer.SHARED_HBM
            or (len(lowered.cores) > 1 and not tensor.on_chip)
            or self._is_coarse(tensor)
        }
        # The cells of the patterns that are followed, by identity.
        parts, cells = self.accesses.parts, self.accesses.cells
        self.cells = {
            id(pattern): cells[id(pattern)]
            for tensor, first in self.accesses.first.items()
            if tensor.number not in self.skipped
            for pattern in parts.get(tensor, (first,))
        }

    def _is_coarse(self, tensor: Tensor) -> bool:
        """Return whether cells of the tensor may be merged ones."""
        return len(self.accesses.cut.get(tensor.number, ())) > MAX_CELLS // 2

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
                if writes and before is None:
                    pending[cell] = ((instruction, operands[index]),)  # type: ignore[assignment]
                elif writes and before is not None:
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
