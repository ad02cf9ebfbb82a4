"""The tensors that may start at another partition than 0, so that they can lie side by side.

A compute engine's lanes map one to one to partitions, and each operand may start at the partitions
that its partition count allows (Trainium/Inferentia2 architecture guide, cross-partition
connectivity). Some tensors do not move: operands of the tensor engine, since the PE array's row
follows from the partition; tensors with run-time offsets or exchanged between cores; and operands
of instructions that use accumulators or random number generators, which belong to the lanes.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

from nkic.ir.program import Body, Instruction, instructions
from nkic.ir.tensors import AccessPattern, Tensor
from nkic.machine.engines import Engine
from nkic.machine.facts import Facts
from nkic.machine.rules import signature, violations
from nkic.machine.targets import Target
from nkic.machine.tiles import start_partitions


def movable(body: Body, target: Target) -> set[int]:
    """Return the numbers of the tensors that may start at any partition that their size allows.

    Every instruction of `body` must stay legal at each of these partitions.
    """
    seen: set[int] = set()
    immovable: set[int] = set()
    cache: dict[Hashable, bool] = {}
    for instruction in instructions(body):
        facts = None
        for name, pattern in _patterns(instruction):
            tensor = pattern.tensor
            seen.add(tensor.number)
            if tensor.number in immovable:
                continue
            facts = facts or instruction.facts(target)
            if not _may_move(instruction, facts, name, pattern, cache):
                immovable.add(tensor.number)
            immovable |= _sources(pattern)
    return seen - immovable


def _patterns(instruction: Instruction) -> Iterator[tuple[str, AccessPattern]]:
    for name, index in instruction.row.operand_index.items():
        operand = instruction.operands[index]
        if isinstance(operand, AccessPattern) and operand.tensor.on_chip:
            yield name, operand


def _sources(pattern: AccessPattern) -> set[int]:
    """Return the tensor that holds the pattern's run-time offsets, as a set of at most one."""
    dynamic = pattern.dynamic
    if dynamic is None or not isinstance(dynamic.source, AccessPattern):
        return set()
    return {dynamic.source.tensor.number}


def _may_move(
    instruction: Instruction,
    facts: Facts,
    name: str,
    pattern: AccessPattern,
    cache: dict[Hashable, bool],
) -> bool:
    starts = _other_starts(pattern.tensor)
    if not starts or pattern.dynamic is not None:
        return False
    if (
        instruction.engine is Engine.TENSOR
        or instruction.row.is_rendezvous
        or any(instruction.row.effects(facts))
    ):
        return False
    return all(_legal(instruction, _moved(facts, name, start), cache) for start in starts)


def _other_starts(tensor: Tensor) -> tuple[int, ...]:
    return () if tensor.fixed is not None else start_partitions(tensor.partitions)[1:]


def _moved(facts: Facts, name: str, offset: int) -> Facts:
    tile = facts.tile(name)
    operands = {**facts.operands, name: tile._replace(start=tile.start + offset)}
    return Facts(facts.target, operands, facts.attributes, facts.engine)


def _legal(instruction: Instruction, facts: Facts, cache: dict[Hashable, bool]) -> bool:
    key = signature(instruction.row, facts)
    if key not in cache:
        cache[key] = not violations(instruction.row, facts)
    return cache[key]
