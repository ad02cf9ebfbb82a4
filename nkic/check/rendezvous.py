"""Check that the cores reach the same rendezvous in the same order, with matching operands.

A core deadlocks if it waits at a barrier or a sendrecv for a partner that never arrives or that
reaches another one first. The cores' programs are known, so this is found at compile time.
"""

from __future__ import annotations

from collections.abc import Sequence

from nkic.base.diagnostics import Label, Reporter
from nkic.base.source import Span
from nkic.ir.program import Body, Instruction, Item, Program
from nkic.ir.tensors import AccessPattern, View
from nkic.machine.engines import Engine
from nkic.machine.facts import Facts
from nkic.machine.operands import Access, Violation
from nkic.machine.rendezvous import Mismatch, Outline, Round, Step, Stop, compare

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
    calls = [Label(span, "called from here") for span in at.user_frames()[1:]]
    advice = mismatch.violation.help if mismatch.violation else ""
    advice = advice or "let both cores reach the same rendezvous in the same order"
    report.error(SLUG, mismatch.text, at.primary, labels=[*_others(mismatch), *calls], help=advice)


def _others(mismatch: Mismatch[Item]) -> list[Label]:
    """Return labels for the location of the other core."""
    if (core := mismatch.without) is not None:
        before = mismatch.last[core]
        return [_label(core, "was last at", before)] if before else []
    steps = [step for step in mismatch.steps if step is not None]
    return [_label(1, "is at", steps[-1])] if len(steps) > 1 else []


def _label(core: int, what: str, step: Step[Item]) -> Label:
    span: Span = step.item.at.primary
    return Label(span, f"core {core} {what} {step.name}")


def _engines(items: Sequence[Instruction], facts: Sequence[Facts]) -> Violation | None:
    """Check that all cores use the same engine."""
    names = [_engine(item, fact).value for item, fact in zip(items, facts, strict=True)]
    if len(set(names)) == 1:
        return None
    text = (
        f"{items[0].row.name}: runs on the {names[0]} engine on core 0 and on the {names[-1]} "
        "engine on core 1"
    )
    return Violation(SLUG, text, help="pass the same `engine` on both cores")


def _engine(instruction: Instruction, facts: Facts) -> Engine:
    return instruction.engine or instruction.row.choose(facts)


def _tensors(items: Sequence[Instruction]) -> Violation | None:
    """Check that the cores share the same tensor."""
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
