"""Which tensors may begin at another partition than 0, so that they can lie side by side.

A compute engine's lanes follow the partitions one to one, and each operand may begin where its
own number of partitions allows (Trainium/Inferentia2 architecture guide, cross-partition
connectivity). What the rows of the PE array hold follows from the partition it came from, so the
operands of the tensor engine stay; so does what is found at run time, and what cores exchange.
Accumulators and random number generators are the lanes' own: what uses them stays, too.
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
    """The tensors, by number, that every instruction of `body` may find at any partition where
    so many partitions can begin.
    """
    seen: set[int] = set()
    stay: set[int] = set()
    known: dict[Hashable, bool] = {}
    for one in instructions(body):
        facts = None
        for name, pattern in _patterns(one):
            tensor = pattern.tensor
            seen.add(tensor.number)
            if tensor.number in stay:
                continue
            facts = facts or one.facts(target)
            if not _may_move(one, facts, name, pattern, known):
                stay.add(tensor.number)
            stay |= _sources(pattern)
    return seen - stay


def _patterns(one: Instruction) -> Iterator[tuple[str, AccessPattern]]:
    for name, index in one.row.operand_index.items():
        operand = one.operands[index]
        if isinstance(operand, AccessPattern) and operand.tensor.on_chip:
            yield name, operand


def _sources(pattern: AccessPattern) -> set[int]:
    """The tensor that holds the pattern's offsets, if there is one."""
    dynamic = pattern.dynamic
    if dynamic is None or not isinstance(dynamic.source, AccessPattern):
        return set()
    return {dynamic.source.tensor.number}


def _may_move(
    one: Instruction,
    facts: Facts,
    name: str,
    pattern: AccessPattern,
    known: dict[Hashable, bool],
) -> bool:
    starts = _other_starts(pattern.tensor)
    if not starts or pattern.dynamic is not None:
        return False
    if one.engine is Engine.TENSOR or one.row.is_rendezvous or any(one.row.effects(facts)):
        return False
    return all(_legal(one, _moved(facts, name, start), known) for start in starts)


def _other_starts(tensor: Tensor) -> tuple[int, ...]:
    return () if tensor.fixed is not None else start_partitions(tensor.partitions)[1:]


def _moved(facts: Facts, name: str, by: int) -> Facts:
    tile = facts.tile(name)
    operands = {**facts.operands, name: tile._replace(start=tile.start + by)}
    return Facts(facts.target, operands, facts.attributes, facts.engine)


def _legal(one: Instruction, facts: Facts, known: dict[Hashable, bool]) -> bool:
    key = signature(one.row, facts)
    if key not in known:
        known[key] = not violations(one.row, facts)
    return known[key]
