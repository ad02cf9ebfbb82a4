"""The stage: every instruction's operands, engine and accumulation flag."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from nkic.base.diagnostics import Reporter
from nkic.ir.program import Body, Instruction, Item, Loop, Operand, Program
from nkic.ir.tensors import AccessPattern, View
from nkic.lower.accumulate import Written
from nkic.lower.patterns import access_pattern
from nkic.machine.engines import Engine
from nkic.machine.operands import Row
from nkic.machine.targets import Target

ACCUMULATE = "accumulate"


def lower(program: Program, report: Reporter) -> Program:
    """`program` with access patterns, engines and decided accumulation."""
    cores = tuple(_Core(program.target, report).body(body) for body in program.cores)
    report.stop_if_errors()
    return replace(program, cores=cores)


class _Core:
    def __init__(self, target: Target, report: Reporter) -> None:
        self.target = target
        self.report = report
        self.written = Written()
        self.engines: dict[tuple[object, ...], Engine] = {}
        # One object for all equal ones: later stages find them again by identity.
        self.patterns: dict[tuple[View, bool, bool], AccessPattern] = {}
        self.attributes: dict[tuple[object, ...], tuple[Any, ...]] = {}

    def body(self, body: Body) -> Body:
        return tuple(self.item(item) for item in body)

    def item(self, item: Item) -> Item:
        if isinstance(item, Loop):
            return replace(item, body=self.body(item.body))
        return self.instruction(item)

    def instruction(self, instruction: Instruction) -> Instruction:
        row = instruction.row
        operands = [
            self.pattern(value, rule.keep_rank, row.streams) if type(value) is View else value
            for value, rule in zip(instruction.operands, row.operands, strict=True)
        ]
        attributes = self.shared(row, instruction.attributes)
        lowered = instruction._replace(operands=tuple(operands), attributes=attributes)
        if instruction.engine is None:
            lowered = lowered._replace(engine=self.engine(lowered))
        return self.accumulation(lowered) if ACCUMULATE in row.attribute_index else lowered

    def pattern(self, view: View, keep_rank: bool, streams: bool) -> AccessPattern:
        """The one pattern of this view."""
        key = (view, keep_rank, streams)
        found = self.patterns.get(key)
        if found is None:
            found = self.patterns[key] = access_pattern(view, keep_rank, streams)
        return found

    def shared(self, row: Row, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """The first of all equal attributes; 1, 1.0 and True are different, and so is -0.0."""
        signs = [repr(values[i]) for i in row.number_attributes]
        return self.attributes.setdefault((values, *map(type, values), *signs), values)

    def engine(self, instruction: Instruction) -> Engine:
        """The row's choice, made once per signature."""
        row = instruction.row
        if len(row.engines) == 1:
            return row.engines[0]
        key = (row, instruction.attributes, *(_shape(o) for o in instruction.operands))
        found = self.engines.get(key)
        if found is None:
            found = self.engines[key] = row.choose(instruction.facts(self.target))
        return found

    def accumulation(self, instruction: Instruction) -> Instruction:
        dst = instruction.operand("dst")
        if not isinstance(dst, AccessPattern):
            return instruction
        wanted = instruction.attribute(ACCUMULATE)
        if wanted is not None:
            self.written.note(dst)
            return instruction
        decided = self.written.decide(dst)
        if decided is None:
            self.report.error(
                "partly-accumulated",
                f"{instruction.row.name}: part of dst was written by an earlier matmul and part "
                "was not, so accumulate=None could mean either",
                instruction.at.span,
                help="say accumulate=True or accumulate=False, or split the matmul",
            )
        changed = _with(instruction, ACCUMULATE, bool(decided))
        return changed._replace(attributes=self.shared(changed.row, changed.attributes))


def _shape(operand: Operand) -> object:
    if type(operand) is AccessPattern:
        return (operand.tensor.buffer, operand.dtype, operand.partitions, operand.dims)
    return operand


def _with(instruction: Instruction, attribute: str, value: object) -> Instruction:
    index = instruction.row.attribute_index[attribute]
    attributes = (*instruction.attributes[:index], value, *instruction.attributes[index + 1 :])
    return instruction._replace(attributes=attributes)
