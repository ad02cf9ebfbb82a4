"""Proof that the lowered program still writes the results that the kernel writes."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from nkic.ir.program import Body, Instruction, Program
from nkic.ir.tensors import AccessPattern, Tensor, View
from nkic.machine.operands import Access
from nkic.prove.model import Finding

_WRITES = (Access.WRITE, Access.UPDATE)


class Written(NamedTuple):
    """The returned tensors, and the numbers of those that the program writes."""

    returned: tuple[Tensor, ...]
    numbers: frozenset[int]


def written(program: Program) -> Written:
    """Return what `prove_returned` needs of the recorded program, which need not be kept."""
    returned = tuple(p.tensor for p in program.outputs)
    return Written(returned, frozenset(_written(program, {t.number for t in returned})))


def prove_returned(recorded: Written, lowered: Program) -> list[Finding]:
    """Return the results that the recorded program writes and `lowered` does not.

    It is also a finding if `lowered` returns other tensors. (The runner finds a result that the
    kernel itself does not write.)
    """
    if recorded.returned != tuple(p.tensor for p in lowered.outputs):
        return [Finding("returned", "other tensors are returned than the kernel's")]
    returned = {tensor.number: tensor for tensor in recorded.returned}
    missing = recorded.numbers - _written(lowered, returned)
    return [
        Finding(
            "returned", f"nothing writes `{returned[n].name}`, which is returned", returned[n].at
        )
        for n in sorted(missing)
    ]


def _written(program: Program, returned: Collection[int]) -> set[int]:
    """Return the tensors among `returned` that some instruction writes."""
    numbers: set[int] = set()
    for body in program.cores:
        for instruction in _backwards(body):
            if len(numbers) == len(returned):
                return numbers
            for rule, operand in zip(instruction.row.operands, instruction.operands, strict=True):
                if rule.access in _WRITES and isinstance(operand, View | AccessPattern):
                    number = operand.tensor.number
                    if number in returned:
                        numbers.add(number)
    return numbers


def _backwards(body: Body) -> Iterator[Instruction]:
    """Yield the instructions in reverse order, since results are written late."""
    for item in reversed(body):
        if isinstance(item, Instruction):
            yield item
        else:
            yield from _backwards(item.body)
