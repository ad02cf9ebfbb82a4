"""Independent proof: no two on-chip tensors in use at the same time share a byte.

Recomputed from the program and its final addresses alone: lifetimes by a plain scan, and a
sweep over them with the bytes in use kept in order. Nothing of the placement is reused.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import NamedTuple

from nkic.ir.effects import touches_of
from nkic.ir.overlap import Bands
from nkic.ir.program import Body, Loop, Program, instructions
from nkic.ir.tensors import Tensor
from nkic.machine.memory import Buffer


class Overlap(NamedTuple):
    """A proof that failed."""

    one: Tensor
    other: Tensor
    instruction: int

    def __str__(self) -> str:
        return f"{self.one!r} and {self.other!r} share bytes at instruction {self.instruction}"


def audit(program: Program) -> list[Overlap]:
    """Every pair of tensors found sharing bytes while in use; empty means proven."""
    found = []
    for body in program.cores:
        uses = _uses(body, program)
        for buffer in (Buffer.SBUF, Buffer.PSUM):
            own = {n: use for n, use in uses.items() if use[0].buffer is buffer}
            found += list(_sweep(own, program))
    return found


Use = tuple[Tensor, int, int]


def _uses(body: Body, program: Program) -> dict[int, Use]:
    """First and last instruction that touches each on-chip tensor."""
    spans = list(_loop_spans(body))
    uses: dict[int, Use] = {}
    for at, touched in touches_of(body, program.target).items():
        for touch in touched:
            tensor = touch.pattern.tensor
            if not tensor.on_chip:
                continue
            first = last = at
            for number, low, high in spans:
                if low <= at <= high and number not in tensor.scope:
                    first, last = min(first, low), max(last, high)
            _, old_first, old_last = uses.get(tensor.number, (tensor, first, last))
            uses[tensor.number] = (tensor, min(first, old_first), max(last, old_last))
    return uses


def _loop_spans(body: Body) -> Iterator[tuple[int, int, int]]:
    for item in body:
        if isinstance(item, Loop):
            numbers = [i.number for i in instructions(item.body)]
            if numbers:
                yield item.number, min(numbers), max(numbers)
            yield from _loop_spans(item.body)


def _sweep(uses: dict[int, Use], program: Program) -> Iterator[Overlap]:
    """Walks starts and ends in order; per band of partitions the byte ranges in use."""
    bands = Bands(program.addresses[n].partition for n in uses)
    in_use: list[list[tuple[int, int, int]]] = [[] for _ in bands.starts]
    events = [(first, 1, n) for n, (_, first, _) in uses.items()]
    events += [(last + 1, 0, n) for n, (_, _, last) in uses.items()]
    for when, starts, number in sorted(events):
        tensor = uses[number][0]
        partition, low = program.addresses[number]
        high = low + tensor.bytes
        for band in bands.of(partition, tensor.partitions):
            if not starts:
                in_use[band].remove((low, high, number))
                continue
            clash = _neighbour(in_use[band], low, high)
            if clash is not None:
                yield Overlap(tensor, uses[clash][0], when)
            insort(in_use[band], (low, high, number))


def _neighbour(ranges: list[tuple[int, int, int]], low: int, high: int) -> int | None:
    """A range in use that meets [low, high). Ranges in use are disjoint while all is well."""
    at = bisect_left(ranges, (low, low, -1))
    for index in (at - 1, at):
        if 0 <= index < len(ranges) and ranges[index][0] < high and low < ranges[index][1]:
            return ranges[index][2]
    return None
