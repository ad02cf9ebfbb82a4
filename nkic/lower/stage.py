"""The stage: lowers every instruction's operands, engine and accumulation flag."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

from nkic.base.diagnostics import Label, Reporter
from nkic.ir.program import Body, Instruction, Item, Loop, Operand, Program, cost_key
from nkic.ir.tensors import AccessPattern, Tensor, View
from nkic.lower.accumulate import Band, Written
from nkic.lower.interned import Interned, Patterns
from nkic.lower.workload import share_out
from nkic.machine.engines import Engine
from nkic.machine.operands import Row
from nkic.machine.rules import violations
from nkic.machine.targets import Target


def lower(program: Program, report: Reporter) -> Program:
    """Return `program` with access patterns, engines and resolved accumulation."""
    cores = tuple(_CoreLowerer(program.target, report).core(body) for body in program.cores)
    report.stop_if_errors()
    return replace(program, cores=cores)


class _CoreLowerer:
    def __init__(self, target: Target, report: Reporter) -> None:
        self.target = target
        self.report = report
        self.written = Written()
        self.loops: tuple[int, ...] = ()  # the numbers of open loops, outermost first
        self.engines: dict[tuple[object, ...], tuple[Engine, tuple[Engine, ...]]] = {}
        # Interned: later stages look these up by identity.
        self.patterns: dict[Row, list[Patterns]] = {}  # one per operand
        self.interned = Interned()
        self.attributes: dict[tuple[object, ...], tuple[Any, ...]] = {}
        # Keyed by identity of the program's attributes.
        self.interned_attributes: dict[int, tuple[Any, ...]] = {}
        # With the accumulation flag; keyed by row, identity of the attributes without it, and flag.
        self.flagged: dict[tuple[Row, int, bool], tuple[Any, ...]] = {}
        self.choices: dict[int, tuple[Engine, ...]] = {}  # by instruction number
        self.split: set[int] = set()  # numbers of instructions that were split

    def core(self, body: Body) -> Body:
        """Lower the body of a core."""
        lowered = self.body(body)
        lowered = share_out(lowered, self.choices, self.target) if self.choices else lowered
        return renumbered(lowered) if self.split else lowered

    def body(self, body: Body) -> Body:
        lowered: list[Item] = []
        for item in body:
            if isinstance(item, Loop):
                self.loops = (*self.loops, item.number)
                lowered.append(replace(item, body=self.body(item.body)))
                self.loops = self.loops[:-1]
            elif item.row.accumulates:
                lowered += self.accumulation(self.instruction(item))
            else:
                lowered.append(self.instruction(item))
        return tuple(lowered)

    def instruction(self, instruction: Instruction) -> Instruction:
        row, values, attributes, engine, at, number, name, after, pinned, iterations = instruction
        operands = [
            (table.by_view.get(id(value)) or table.make(value)) if type(value) is View else value
            for value, table in zip(values, self.patterns.get(row) or self.of_row(row), strict=True)
        ]
        attributes = self.interned_attributes.get(id(attributes)) or self.shared(row, attributes)
        if engine is None and len(row.engines) == 1:
            engine = row.engines[0]
        fields = (
            row,
            tuple(operands),
            attributes,
            engine,
            at,
            number,
            name,
            after,
            pinned,
            iterations,
        )
        lowered = tuple.__new__(Instruction, fields)
        return lowered if engine else _changed(lowered, engine=self.engine(lowered))

    def of_row(self, row: Row) -> list[Patterns]:
        """Return the pattern tables of the row's operands."""
        tables = self.patterns[row] = [
            self.interned.of(rule.keep_rank, row.streams) for rule in row.operands
        ]
        return tables

    def shared(self, row: Row, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the interned attributes; 1, 1.0 and True are different, and so is -0.0."""
        signs = [repr(values[i]) for i in row.number_attributes]
        key = (values, *map(type, values), *signs)
        interned = self.interned_attributes[id(values)] = self.attributes.setdefault(key, values)
        return interned

    def engine(self, instruction: Instruction) -> Engine:
        """Return the row's choice, once per signature; record instructions left to the workload."""
        row = instruction.row
        key = (row, instruction.attributes, *map(cost_key, instruction.operands))
        choice = self.engines.get(key)
        if choice is None:
            facts = instruction.facts(self.target)
            candidates = row.by_workload(facts) if row.by_workload else ()
            choice = self.engines[key] = row.choose(facts), candidates
        engine, candidates = choice
        if candidates:
            self.choices[instruction.number] = candidates
        return engine

    def accumulation(self, instruction: Instruction) -> list[Instruction]:
        """Return the instruction, or several if its dst is partly written."""
        flag = instruction.row.accumulates
        dst = instruction.operand("dst")
        if not isinstance(dst, AccessPattern):
            return [instruction]
        if instruction.attribute(flag) is not None:
            self.written.note(dst)
            return [instruction]
        if self.written.covers(dst):  # true for all but the first of a sum
            return [self.decided(instruction, True)]
        bands = self.written.within(dst)
        decided = self.written.decide(dst)
        if decided is False and dst.tensor.scope != self.loops:
            self.first_in_loop(instruction, dst.tensor)
        if decided is not None:
            return [self.decided(instruction, decided)]
        return self.divided(instruction, bands)

    def first_in_loop(self, instruction: Instruction, tensor: Tensor) -> None:
        """Report a first write in a loop: the flag is the same in all iterations."""
        self.report.error(
            "accumulate-in-loop",
            f"{instruction.row.name}: `{tensor.name}` is allocated outside this device loop and no "
            "earlier matmul wrote it; accumulate=None would add in all iterations but the first",
            instruction.at.primary,
            labels=[Label(tensor.at.primary, f"`{tensor.name}` is allocated here")],
            help="pass accumulate=False to overwrite in every iteration, or do the first matmul "
            "before the loop and pass accumulate=True in it",
        )

    def divided(self, instruction: Instruction, bands: list[Band]) -> list[Instruction]:
        pieces = []
        if not any(_is_dynamic(operand) for operand in instruction.operands):
            from nkic.lower.split import parts  # rarely needed

            pieces = [self.decided(piece, flag) for piece, flag in parts(instruction, bands)]
        if pieces and all(not violations(i.row, i.facts(self.target)) for i in pieces):
            self.split.add(instruction.number)
            return pieces
        self.report.error(
            "partly-accumulated",
            f"{instruction.row.name}: part of dst was written by an earlier matmul and part "
            "was not, so accumulate=None could mean either",
            instruction.at.primary,
            help="pass accumulate=True or accumulate=False, or split the matmul",
        )
        return [self.decided(instruction, False)]

    def decided(self, instruction: Instruction, accumulates: bool) -> Instruction:
        row, old = instruction.row, instruction.attributes
        attributes = self.flagged.get((row, id(old), accumulates))
        if attributes is None:
            index = row.attribute_index[row.accumulates]
            changed = (*old[:index], accumulates, *old[index + 1 :])
            attributes = self.shared(row, changed)
            del self.interned_attributes[id(changed)]  # which nothing keeps alive
            self.flagged[row, id(old), accumulates] = attributes
        return _changed(instruction, attributes=attributes)


def renumbered(body: Body) -> Body:
    """Return the body with increasing numbers: parts of a split instruction share one before."""
    order, new = count(), dict[int, list[int]]()

    def numbered(body: Body) -> Body:
        return tuple(
            [
                replace(i, body=numbered(i.body)) if isinstance(i, Loop) else with_number(i)
                for i in body
            ]
        )

    def with_number(item: Instruction) -> Instruction:
        new.setdefault(item.number, []).append(number := next(order))
        return item._replace(number=number)

    def linked(body: Body) -> Body:
        return tuple(
            [
                replace(i, body=linked(i.body))
                if isinstance(i, Loop)
                else i._replace(after=tuple(n for old in i.after for n in new[old]))
                for i in body
            ]
        )

    return linked(numbered(body))


def _is_dynamic(operand: Operand) -> bool:
    return isinstance(operand, AccessPattern) and operand.dynamic is not None


def _changed(
    instruction: Instruction,
    attributes: tuple[Any, ...] | None = None,
    engine: Engine | None = None,
) -> Instruction:
    """A faster `_replace`."""
    row, operands, old, before, *rest = instruction
    changed = (row, operands, old if attributes is None else attributes, engine or before, *rest)
    return tuple.__new__(Instruction, changed)
