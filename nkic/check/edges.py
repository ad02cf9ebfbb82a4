"""Checks the ordering edges that the kernel asked for.

An edge is a wait that the device executes every time, so the earlier instruction must be in the
same device loops as the later one, or in an enclosing one. Source: `nki.isa`, `depends_on`.
"""

from __future__ import annotations

from collections.abc import Iterator

from nkic.base.diagnostics import Label, Reporter
from nkic.check.stage import call_labels
from nkic.ir.program import Body, Instruction, Program, instructions

Loops = tuple[int, ...]  # loop numbers, outermost first


def find_edges(program: Program, report: Reporter) -> None:
    """Report every edge that leaves a device loop."""
    for body in program.cores:
        if not any(instruction.after for instruction in instructions(body)):
            continue
        numbered: dict[int, tuple[Instruction, Loops]] = {}
        for instruction, loops in _nested(body):
            numbered[instruction.number] = instruction, loops
            for number in instruction.after:
                if number in numbered and loops[: len(numbered[number][1])] != numbered[number][1]:
                    _complain(instruction, numbered[number][0], report)


def _nested(body: Body, loops: Loops = ()) -> Iterator[tuple[Instruction, Loops]]:
    """Yield every instruction with the device loops around it."""
    for item in body:
        if isinstance(item, Instruction):
            yield item, loops
        else:
            yield from _nested(item.body, (*loops, item.number))


def _complain(consumer: Instruction, producer: Instruction, report: Reporter) -> None:
    report.error(
        "bad-schedule",
        f"{consumer.row.name} is ordered after {producer.row.name}, which is inside a device loop, "
        "but is itself outside it: nothing outside the loop can wait for one iteration",
        consumer.at.primary,
        labels=[
            Label(producer.at.primary, f"{producer.row.name} is in the loop"),
            *call_labels(consumer.at),
        ],
        help="remove the edge: instructions after the loop wait for its end; or order two "
        "instructions of the same loop",
    )
