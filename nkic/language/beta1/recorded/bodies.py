"""Operations on recorded bodies, shared by the passes that rewrite them.

Every function that takes `memories` considers only tensors in those buffers. The tensor that holds
the index of a dynamic access counts as an operand.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from nkic.ir.program import Instruction, Item, Operand
from nkic.ir.tensors import Tensor, View
from nkic.language.trace import Trace
from nkic.machine.memory import Buffer

Memories = Collection[Buffer]


def tensors(operands: Sequence[Operand], memories: Memories) -> Iterator[Tensor]:
    """Yield the tensors that the operands access, with repetitions."""
    for operand in operands:
        if not isinstance(operand, View):
            continue
        if operand.tensor.buffer in memories:
            yield operand.tensor
        if operand.dynamic is not None and isinstance(operand.dynamic.source, View):
            yield from tensors([operand.dynamic.source], memories)


def has_fixed(body: Sequence[Instruction], memories: Memories) -> bool:
    """Return whether the kernel has chosen the address of any tensor of the body."""
    return any(t.fixed is not None for item in body for t in tensors(item.operands, memories))


def uses(body: Sequence[Instruction], memories: Memories) -> dict[Tensor, list[int]]:
    """Return the indices of the instructions that access each tensor, in ascending order."""
    indices: dict[Tensor, list[int]] = {}
    for index, item in enumerate(body):
        for tensor in dict.fromkeys(tensors(item.operands, memories)):
            indices.setdefault(tensor, []).append(index)
    return indices


def substituted(item: Instruction, replacements: Mapping[Tensor, Tensor]) -> Instruction:
    """Return the instruction with some of its tensors replaced by others."""

    def replaced(operand: Operand) -> Operand:
        if not isinstance(operand, View):
            return operand
        tensor = replacements.get(operand.tensor, operand.tensor)
        dynamic = operand.dynamic
        if dynamic is not None and isinstance(dynamic.source, View):
            source = replaced(dynamic.source)
            assert isinstance(source, View)
            dynamic = dynamic._replace(source=source)
        return operand._replace(tensor=tensor, dynamic=dynamic)

    return item._replace(operands=tuple(map(replaced, item.operands)))


def attribute_last(trace: Trace, origin: Instruction) -> int:
    """Copy the location, name, region and iterations of `origin` to the last instruction.

    Returns the index of that instruction in the body.
    """
    last = trace.body[-1]
    assert isinstance(last, Instruction)
    trace.body[-1] = last._replace(
        at=origin.at, name=origin.name, pinned=origin.pinned, iterations=origin.iterations
    )
    return len(trace.body) - 1


def renumbered(body: Sequence[Item], added: Collection[int]) -> list[Item]:
    """Return the body with every instruction numbered by its index, and dependencies kept.

    `added` has the indices of instructions that were not part of the original body.
    """
    numbers: dict[int, int] = {}
    for index, item in enumerate(body):
        if isinstance(item, Instruction) and index not in added:
            numbers[item.number] = index
    result: list[Item] = []
    for index, item in enumerate(body):
        assert isinstance(item, Instruction)
        after = tuple(numbers[number] for number in item.after)
        result.append(item._replace(number=index, after=after))
    return result
