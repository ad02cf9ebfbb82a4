"""Remarks on allocation: how tensors were placed, and which instructions wait for reused bytes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from nkic.allocate.liveness import Lifetime, lifetimes, most_at_once
from nkic.allocate.place import REST, Addresses, DoesNotFit, Space, place, space_of
from nkic.allocate.roles import by_role
from nkic.base.remark import Kind, Number, Remark, line_of
from nkic.base.text import plural, size
from nkic.ir.dependence import DependenceGraph
from nkic.ir.program import Body, Instruction, Program, instructions
from nkic.ir.tensors import Tensor
from nkic.machine.memory import MEMORIES, PARTITIONS, Buffer

STAGE = "allocate"
NAMED = 3  # lines that a remark lists


def remarks(
    placed: Program, graphs: Sequence[DependenceGraph], rest: int = REST
) -> Iterator[Remark]:
    """Yield the remarks on the stage's output, and the `rest` that it was given."""
    for body, graph in zip(placed.cores, graphs, strict=True):
        for buffer in MEMORIES:
            space = space_of(buffer, placed.target)
            lives = lifetimes(body, placed.target, buffer)
            if lives:
                yield _strategy(lives, space, placed, rest)
                yield from _lines(lives, space, placed)
        yield from _reuse(body, graph)


def _strategy(lives: list[Lifetime], space: Space, placed: Program, rest: int) -> Remark:
    """Return how a memory was filled, and its peak use."""
    peak = most_at_once(lives, space.size)
    descriptions = (
        description
        for description, addresses in _in_order(lives, space, rest)
        if _is_part(addresses, placed)
    )
    description = next(descriptions, None)
    kind = Kind.PASSED if description is not None else Kind.MISSED
    description = (
        description
        or "by size, because they do not fit in program order: less of the kernel overlaps"
    )
    name = space.buffer.value.upper()
    text = (
        f"{name}: {plural(len(lives), 'tensor')} placed {description}; at most "
        f"{size(peak * PARTITIONS)} of {size(space.capacity * PARTITIONS)} hold data "
        "at one time in program order"
    )
    numbers: Mapping[str, Number] = {
        "memory": space.buffer.value,
        "tensors": len(lives),
        "peak_bytes": peak * PARTITIONS,
        "limit_bytes": space.capacity * PARTITIONS,
        "in_program_order": int(kind is Kind.PASSED),
    }
    return Remark(STAGE, "placement", kind, lives[0].tensor.at, text, numbers)


def _in_order(
    lives: Sequence[Lifetime], space: Space, rest: int
) -> Iterator[tuple[str, Addresses]]:
    """Yield the placements in program order that fit: a description and the addresses."""
    with suppress(DoesNotFit):
        yield "in program order, oldest free slot first", place(lives, space, rest)
    if space.buffer is Buffer.PSUM:
        with suppress(DoesNotFit):
            description = "in program order, with separate banks for each declaration"
            yield description, by_role(lives, space)


def _is_part(addresses: Addresses, placed: Program) -> bool:
    return all(placed.addresses[number] == at for number, at in addresses.items())


def _lines(lives: Sequence[Lifetime], space: Space, placed: Program) -> Iterator[Remark]:
    """Yield, per declaring line, the number of tensors and of buffers."""
    by_line: dict[tuple[str, int], list[Tensor]] = defaultdict(list)
    for life in lives:
        by_line[line_of(life.tensor.at)].append(life.tensor)
    for tensors in by_line.values():
        first = tensors[0]
        starts = {placed.addresses[tensor.number] for tensor in tensors}
        low = min(at.byte for at in starts)
        high = max(placed.addresses[t.number].byte + t.bytes for t in tensors)
        text = (
            f"`{first.name}`: {plural(len(tensors), 'tensor')} of {size(first.bytes)} in each of "
            f"{plural(first.partitions, 'partition')}, in {plural(len(starts), 'buffer')} of "
            f"{space.buffer.value.upper()}{' in turn' * (len(starts) < len(tensors))}, bytes {low} "
            f"to {high}"
        )
        numbers: Mapping[str, Number] = {
            "memory": space.buffer.value,
            "tensors": len(tensors),
            "buffers": len(starts),
            "partition_bytes": first.bytes,
            "low_byte": low,
            "high_byte": high,
            "fixed": sum(tensor.fixed is not None for tensor in tensors),
        }
        yield Remark(STAGE, "buffers", Kind.ANALYSIS, first.at, text, numbers)


def _reuse(body: Body, graph: DependenceGraph) -> Iterator[Remark]:
    """Yield the instructions that wait for others only because they reuse their bytes."""
    code = {instruction.number: instruction for instruction in instructions(body)}
    pairs_by_line: dict[object, list[tuple[Instruction, Instruction]]] = defaultdict(list)
    for number, instruction in code.items():
        edges = graph.sources(number)
        other_sources = {edge.source for edge in edges if edge.kind != "reuse"}
        for edge in edges:
            if edge.kind == "reuse" and not edge.distance and edge.source not in other_sources:
                pairs_by_line[line_of(instruction.at)].append((instruction, code[edge.source]))
    for pairs in pairs_by_line.values():
        after = pairs[0][0]
        former = Counter(
            f"{instruction.row.name} of line {instruction.at.primary.line}"
            for _, instruction in pairs
        )
        ranked = sorted(former.items(), key=lambda pair: (-pair[1], pair[0]))
        named = ", ".join(f"{name} ({count:,})" for name, count in ranked[:NAMED])
        text = (
            f"{after.row.name} reuses bytes, and has to wait for {plural(len(pairs), 'use')} of "
            f"them: {named}{', …' * (len(ranked) > NAMED)}"
        )
        numbers: Mapping[str, Number] = {"edges": len(pairs), "lines": len(former)}
        yield Remark(STAGE, "reuse", Kind.ANALYSIS, after.at, text, numbers)
