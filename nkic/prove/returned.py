"""Proof that what the kernel writes of its results is still written by the program that runs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from nkic.ir.program import Body, Instruction, Program
from nkic.ir.tensors import AccessPattern, Tensor, View
from nkic.machine.operands import Access
from nkic.prove.model import Finding

_WRITES = (Access.WRITE, Access.UPDATE)


class Written(NamedTuple):
    """What a program returns, and the numbers of the tensors among it that it writes."""

    returned: tuple[Tensor, ...]
    numbers: frozenset[int]


def written(program: Program) -> Written:
    """What `prove_returned` asks of a program as it was recorded, which need not be kept for it."""
    returned = tuple(p.tensor for p in program.outputs)
    return Written(returned, frozenset(_written(program, {t.number for t in returned})))


def prove_returned(meant: Written, lowered: Program) -> list[Finding]:
    """Results that the program as it was recorded writes, and `lowered` does not, or returns
    something else for. (A result that the kernel itself leaves out is for the runner to find.)
    """
    if meant.returned != tuple(p.tensor for p in lowered.outputs):
        return [Finding("returned", "other tensors are returned than the kernel's")]
    wanted = {tensor.number: tensor for tensor in meant.returned}
    missing = meant.numbers - _written(lowered, wanted)
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
