"""Live ranges of tensors: from the first to the last access in program order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from nkic.ir.effects import accesses_of
from nkic.ir.program import Body, Loop, instructions
from nkic.ir.tensors import Tensor
from nkic.machine.memory import Buffer
from nkic.machine.targets import Target


class Lifetime(NamedTuple):
    """The live range of `tensor`: instructions `first` to `last`, both included."""

    tensor: Tensor
    first: int
    last: int

    def meets(self, other: Lifetime) -> bool:
        """Return whether the two live ranges overlap."""
        return self.first <= other.last and other.first <= self.last


def lifetimes(body: Body, target: Target, buffer: Buffer) -> list[Lifetime]:
    """Return the live ranges of the tensors of `buffer` that `body` accesses, by first access.

    A tensor that a device loop accesses but does not declare is live throughout the loop.
    """
    return lifetimes_in(body, target, (buffer,))[0]


def lifetimes_in(body: Body, target: Target, buffers: Sequence[Buffer]) -> list[list[Lifetime]]:
    """Return `lifetimes` for each of `buffers`."""
    accesses, spans = accesses_of(body, target), _spans(body)
    found: dict[Buffer, list[tuple[int, int, int, Tensor]]] = {buffer: [] for buffer in Buffer}
    for (tensor, pattern), first in zip(accesses.first.items(), accesses.begun, strict=True):
        last = accesses.last[id(pattern)]
        if tensor in accesses.parts:
            last = max([accesses.last[id(part)] for part in accesses.parts[tensor]])
        if spans:
            first, last = _outside(tensor, first, spans)[0], _outside(tensor, last, spans)[1]
        found[tensor.buffer].append((first, tensor.number, last, tensor))
    new = tuple.__new__
    return [
        [new(Lifetime, (tensor, first, last)) for first, _, last, tensor in sorted(found[buffer])]
        for buffer in buffers
    ]


def most_at_once(lives: Sequence[Lifetime], size: Callable[[Tensor], int] = lambda _: 1) -> int:
    """Return the peak of the live tensors' count, or of the sum of their `size`."""
    changes: dict[int, int] = defaultdict(int)
    for life in lives:
        changes[life.first] += size(life.tensor)
        changes[life.last + 1] -= size(life.tensor)
    level = peak = 0
    for number in sorted(changes):
        level += changes[number]
        peak = max(peak, level)
    return peak


Span = tuple[int, int, int]  # the number of a loop, its first and its last instruction


def _spans(body: Body, outer: tuple[Span, ...] = ()) -> dict[int, tuple[Span, ...]]:
    """Return the loops around each instruction that is in a loop, outermost first."""
    spans: dict[int, tuple[Span, ...]] = {}
    for item in body:
        if isinstance(item, Loop):
            numbers = [instruction.number for instruction in instructions(item.body)]
            around = (*outer, (item.number, min(numbers, default=0), max(numbers, default=0)))
            spans |= dict.fromkeys(numbers, around) | _spans(item.body, around)
    return spans


def _outside(tensor: Tensor, number: int, spans: Mapping[int, Sequence[Span]]) -> tuple[int, int]:
    """Return an access to `tensor` as a range: all of the outermost loop that does not declare it,
    if the access is in one.
    """
    for loop, first, last in spans.get(number, ()):
        if loop not in tensor.scope:
            return first, last
    return number, number
