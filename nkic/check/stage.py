"""The stage: rules of the instruction table and bounds of views, each asked once per signature."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Protocol

from nkic.base.diagnostics import Label, Reporter, within
from nkic.base.source import CallChain, Span
from nkic.check.alike import alike
from nkic.check.bounds import out_of_bounds
from nkic.ir.program import Body, Instruction, Item, Operand, Program, instructions
from nkic.ir.tensors import View
from nkic.machine.operands import Violation
from nkic.machine.rules import violations

OFFSETS = ("scalar_offset", "vector_offset")  # the arguments of `.ap()` that hold them


class Locate(Protocol):
    """Gives the span of an instruction's argument by name; where the argument is a call itself,
    that of its own argument that is one of `within`.
    """

    def __call__(
        self, instruction: Instruction, parameter: str, within: Collection[str] = ()
    ) -> Span: ...


def _at_the_call(instruction: Instruction, parameter: str, within: Collection[str] = ()) -> Span:
    """Where no source is at hand."""
    return instruction.at.primary


def check(program: Program, report: Reporter, locate: Locate | None = None) -> None:
    """Reports every violation. `locate` gives the span of an instruction's argument by name."""
    find(program, report, locate)
    report.stop_if_errors()


def find(program: Program, report: Reporter, locate: Locate | None = None) -> Program:
    """As `check`, but goes on: gives the program without the instructions that break a rule."""
    checker = _Checker(program, report, locate or _at_the_call)
    return replace(program, cores=tuple(checker.body(body) for body in program.cores))


class _Checker:
    def __init__(self, program: Program, report: Reporter, locate: Locate) -> None:
        self.target = program.target
        self.cores = program.cores
        self.report = report
        self.locate = locate
        self.known: dict[tuple[object, ...], list[Violation]] = {}
        self.legal: dict[int, Instruction] = {}  # one by its place, which it keeps alive

    def body(self, body: Body) -> Body:
        """What is right of `body`; a loop without anything in it is left out."""
        return tuple(kept for item in body if (kept := self.item(item)) is not None)

    def item(self, item: Item) -> Item | None:
        if isinstance(item, Instruction):
            return item if self.instruction(item) else None
        body = self.body(item.body)
        return replace(item, body=body) if body else None

    def instruction(self, instruction: Instruction) -> bool:
        """Reports what is wrong; whether nothing is."""
        place = id(instruction.at)
        last = self.legal.get(place)
        if last is None or not alike(instruction, last):
            found = self.bounds(instruction) or self.rules(instruction)
            for violation in found:
                self.complain(instruction, violation)
            if found:
                return False
            self.legal[place] = instruction
        return True

    def rules(self, instruction: Instruction) -> list[Violation]:
        row = instruction.row
        key = (
            row,
            instruction.attributes,
            *map(type, instruction.attributes),  # 1, 1.0 and True are equal, but not to a rule
            instruction.engine,
            *(seen(o) for o in instruction.operands),
        )
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = violations(row, instruction.facts(self.target))
        return list(found)

    def bounds(self, instruction: Instruction) -> list[Violation]:
        found = []
        for name, index in instruction.row.operand_index.items():
            view = instruction.operands[index]
            if type(view) is View and (wrong := out_of_bounds(view, instruction.row.name, name)):
                found.append(wrong)
        return found

    def complain(self, instruction: Instruction, violation: Violation) -> None:
        at, names = instruction.at, OFFSETS if violation.offsets else ()
        span = at.primary
        if violation.operand:
            span = self.locate(instruction, violation.operand, names)
        known = self.report.knows(violation.slug, span)
        self.report.error(
            violation.slug,
            violation.message,
            span,
            labels=[*_declared(instruction, violation), *call_labels(at)],
            notes=[*within(at), *([] if known else self.iteration(instruction))],
            help=violation.help,
        )

    def iteration(self, instruction: Instruction) -> tuple[str, ...]:
        """Which of the instructions of its place this is, where unrolled loops made several."""
        same = [one for one in instructions(self.of(instruction)) if one.at is instruction.at]
        if len(same) < 2:
            return ()
        place = next(n for n, one in enumerate(same, 1) if one is instruction)
        return (
            f"this is instruction {place} of the {len(same)} that unrolled loops make of this line",
        )

    def of(self, instruction: Instruction) -> Body:
        """The body of the core that runs the instruction."""
        return next(b for b in self.cores if any(one is instruction for one in instructions(b)))


def seen(operand: Operand) -> object:
    """What tells tiles apart for rules: all but offsets. Numbers keep their type (1, not 1.0)."""
    if type(operand) is not View:
        return (type(operand), operand)
    tensor, shape, strides, offset, dtype, dynamic = operand
    if dynamic is not None:
        return operand.tile()
    if not tensor.on_chip:
        return (tensor.buffer, dtype.name, shape, strides)
    pitch = tensor.bytes // dtype.size
    start = tensor.first + (offset // pitch if pitch else 0)
    return (tensor.buffer, dtype.name, shape, strides[1:], start)


def _declared(instruction: Instruction, violation: Violation) -> list[Label]:
    """Where the tensor that the violation is about was declared."""
    index = instruction.row.operand_index.get(violation.operand)
    view: object = instruction.operands[index] if index is not None else None
    if violation.offsets and isinstance(view, View) and view.dynamic is not None:
        view = view.dynamic.source
    if not isinstance(view, View):
        return []
    tensor = view.tensor
    sizes = ", ".join(map(str, tensor.shape))
    what = f"`{tensor.name}` is {tensor.dtype.name}[{sizes}] in {tensor.buffer.value}"
    return [Label(tensor.at.primary, what)]


def call_labels(at: CallChain) -> list[Label]:
    """The calls that led to `at`, as secondary labels."""
    return [Label(span, "called from here") for span in at.user_frames()[1:]]
