"""Reads of registers that nothing has set."""

from __future__ import annotations

from collections.abc import Iterable

from nkic.base.diagnostics import Label, Reporter
from nkic.base.source import CallChain
from nkic.check.stage import call_labels
from nkic.ir.effects import accesses_of, registers_of
from nkic.ir.program import Body, Instruction, Loop, Program
from nkic.machine.facts import Register
from nkic.machine.operands import Access


def find_unset_registers(program: Program, report: Reporter) -> None:
    """Report reads of registers that no earlier instruction has set, not even in a loop.

    The runner finds the others: those whose setter is in a loop that has no iterations.
    """
    for body in program.cores:
        has_loops = any(type(item) is Loop for item in body)
        if has_loops or accesses_of(body, program.target).stateful:
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
            self.set.update([item.counter.number] if item.counter is not None else [])
            self.body(item.body)

    def instruction(self, instruction: Instruction) -> None:
        registers = registers_of(instruction)
        reads = [number for number, access in registers if access.reads]
        self.read(reads, instruction.at, instruction.row.name)
        for number, access in registers:
            if access is Access.WRITE and _creates(instruction):
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
                at.primary,
                labels=[made, *call_labels(at)],
                help="load it first with nisa.register_load, or pass nisa.register_alloc a value",
            )


def _creates(instruction: Instruction) -> bool:
    """Return whether the instruction makes a register and gives it no value."""
    return sum(operand is not None for operand in instruction.operands) == 1
