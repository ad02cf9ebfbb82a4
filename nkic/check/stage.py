"""The stage: the table's rules and the bounds of views, evaluated once per signature."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import chain
from typing import NamedTuple, Protocol

from nkic.base.diagnostics import Label, Reporter, within
from nkic.base.source import CallChain, Span
from nkic.check.advice import advice
from nkic.check.bounds import out_of_bounds
from nkic.ir.groups import Group, Groups, grouped
from nkic.ir.program import Body, Instruction, Item, Operand, Program, instructions
from nkic.ir.tensors import Tensor, View
from nkic.machine.operands import Violation
from nkic.machine.rules import violations

OFFSETS = ("scalar_offset", "vector_offset")  # the arguments of `.ap()` for dynamic offsets


class Locate(Protocol):
    """Returns the span of an instruction's argument, given the parameter's name.

    If the argument is itself a call, returns the span of that call's argument in `within`.
    """

    def __call__(
        self, instruction: Instruction, parameter: str, within: Collection[str] = ()
    ) -> Span: ...


def _whole_call(instruction: Instruction, parameter: str, within: Collection[str] = ()) -> Span:
    """Return the span of the whole call, if no source is available."""
    return instruction.at.primary


class Checked(NamedTuple):
    """The program without its illegal instructions, and the group of each legal one, by core."""

    program: Program
    groups: Groups


def check(program: Program, report: Reporter, locate: Locate | None = None) -> None:
    """Report every violation and stop. `locate` returns the span of an argument by name."""
    find(program, report, locate)
    report.stop_if_errors()


def find(program: Program, report: Reporter, locate: Locate | None = None) -> Checked:
    """Report every violation and return the program without the offending instructions."""
    groups = grouped(program)
    checker = _Checker(program, report, locate or _whole_call)
    if all(checker.accepts(group) for group in dict.fromkeys(chain(*groups))):
        return Checked(program, groups)
    return checker.legal(program, groups)


class _Checker:
    def __init__(self, program: Program, report: Reporter, locate: Locate) -> None:
        self.program = program
        self.target = program.target
        self.cores = program.cores
        self.report = report
        self.locate = locate
        self.cached: dict[tuple[object, ...], list[Violation]] = {}
        self.accepted: dict[Group, bool] = {}

    def accepts(self, group: Group) -> bool:
        """Return whether the first instruction of `group` is legal: then all of them are."""
        if group not in self.accepted:
            self.accepted[group] = not self.problems(group.first)
        return self.accepted[group]

    def problems(self, instruction: Instruction) -> list[Violation]:
        return self.bounds(instruction) or self.rules(instruction)

    def legal(self, program: Program, groups: Groups) -> Checked:
        """Report violations and return what is legal."""
        kept: list[list[Group]] = [[] for _ in groups]
        cores = [
            self.body(body, iter(own), legal)
            for body, own, legal in zip(program.cores, groups, kept, strict=True)
        ]
        return Checked(replace(program, cores=tuple(cores)), kept)

    def body(self, body: Body, groups: Iterator[Group], legal: list[Group]) -> Body:
        """Return the legal part of `body`, without loops that become empty."""
        items: list[Item] = []
        for item in body:
            if isinstance(item, Instruction):
                items += self.instruction(item, next(groups), legal)
            elif inner := self.body(item.body, groups, legal):
                items.append(replace(item, body=inner))
        return tuple(items)

    def instruction(
        self, instruction: Instruction, group: Group, legal: list[Group]
    ) -> tuple[Instruction, ...]:
        """Report violations, and return the instruction if there are none."""
        if self.accepts(group):
            legal.append(group)
            return (instruction,)
        problems = self.problems(instruction)
        for violation in problems:
            self.complain(instruction, violation)
        if problems:
            return ()
        legal.append(Group(instruction))
        return (instruction,)

    def rules(self, instruction: Instruction) -> list[Violation]:
        row = instruction.row
        key = (
            row,
            instruction.attributes,
            *map(type, instruction.attributes),  # 1, 1.0 and True are equal, but not to a rule
            instruction.engine,
            *(seen(o) for o in instruction.operands),
        )
        result = self.cached.get(key)
        if result is None:
            result = self.cached[key] = violations(row, instruction.facts(self.target))
        return list(result)

    def bounds(self, instruction: Instruction) -> list[Violation]:
        result = []
        for name, index in instruction.row.operand_index.items():
            view = instruction.operands[index]
            if type(view) is View and (wrong := out_of_bounds(view, instruction.row.name, name)):
                result.append(wrong)
        return result

    def complain(self, instruction: Instruction, violation: Violation) -> None:
        at, names = instruction.at, OFFSETS if violation.offsets else ()
        span = at.primary
        if violation.operand:
            span = self.locate(instruction, violation.operand, names)
        is_known = self.report.knows(violation.slug, span)
        self.report.error(
            violation.slug,
            violation.message,
            span,
            labels=[*_declared(instruction, violation), *call_labels(at)],
            notes=[*within(at), *([] if is_known else self.iteration(instruction))],
            help=advice(self.program, instruction, violation) or violation.help,
        )

    def iteration(self, instruction: Instruction) -> tuple[str, ...]:
        """Return a note that numbers the instruction if unrolled loops made several here."""
        siblings = [
            other for other in instructions(self.of(instruction)) if other.at is instruction.at
        ]
        if all(map(self.problems, siblings)):  # the count of the error says so already
            return ()
        place = next(n for n, other in enumerate(siblings, 1) if other is instruction)
        return (
            f"this is instruction {place} of the {len(siblings)} that unrolled loops make of this "
            "line",
        )

    def of(self, instruction: Instruction) -> Body:
        """Return the body of the core that runs the instruction."""
        return next(b for b in self.cores if any(item is instruction for item in instructions(b)))


def seen(operand: Operand) -> object:
    """Return the key of an operand for rules: without offsets, with the types of numbers."""
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
    """Return a label for the declaration of the tensor in question."""
    index = instruction.row.operand_index.get(violation.operand)
    view: object = instruction.operands[index] if index is not None else None
    if violation.offsets and isinstance(view, View) and view.dynamic is not None:
        view = view.dynamic.source
    return [declaration(view.tensor)] if isinstance(view, View) else []


def declaration(tensor: Tensor) -> Label:
    """Return a label for the declaration of a tensor."""
    sizes = ", ".join(map(str, tensor.shape))
    what = f"`{tensor.name}` is {tensor.dtype.name}[{sizes}] in {tensor.buffer.value}"
    return Label(tensor.at.primary, what)


def call_labels(at: CallChain) -> list[Label]:
    """Return the calls that led to `at` as secondary labels."""
    return [Label(span, "called from here") for span in at.user_frames()[1:]]
