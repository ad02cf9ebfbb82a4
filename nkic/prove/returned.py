"""Proof that what the kernel writes of its results is still written by the program that runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from nkic.ir.program import Body, Instruction, Program
from nkic.ir.tensors import AccessPattern, View
from nkic.machine.operands import Access
from nkic.prove.model import Finding

_WRITES = (Access.WRITE, Access.UPDATE)


def prove_returned(program: Program, lowered: Program) -> list[Finding]:
    """Results that `program`, as it was recorded, writes, and `lowered` does not, or returns
    something else for. (A result that the kernel itself leaves out is for the runner to find.)
    """
    if [p.tensor for p in program.outputs] != [p.tensor for p in lowered.outputs]:
        return [Finding("returned", "other tensors are returned than the kernel's")]
    wanted = {p.tensor.number: p.tensor for p in program.outputs}
    missing = _written(program, wanted) - _written(lowered, wanted)
    return [
        Finding("returned", f"nothing writes `{wanted[n].name}`, which is returned", wanted[n].at)
        for n in sorted(missing)
    ]


def _written(program: Program, wanted: Collection[int]) -> set[int]:
    """Which of the tensors `wanted` some instruction writes."""
    found: set[int] = set()
    for body in program.cores:
        for one in _backwards(body):
            if len(found) == len(wanted):
                return found
            for rule, operand in zip(one.row.operands, one.operands, strict=True):
                if rule.access in _WRITES and isinstance(operand, View | AccessPattern):
                    number = operand.tensor.number
                    if number in wanted:
                        found.add(number)
    return found


def _backwards(body: Body) -> Iterator[Instruction]:
    """The instructions from the last to the first: results are written late."""
    for item in reversed(body):
        if isinstance(item, Instruction):
            yield item
        else:
            yield from _backwards(item.body)
