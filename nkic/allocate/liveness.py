"""Live ranges of tensors: from the first to the last access in program order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from nkic.ir.effects import Touches, touches_of
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
    firsts, lasts = _ends(body, touches_of(body, target))
    by_buffer = {buffer: list[tuple[int, int, Tensor]]() for buffer in (*Buffer, *buffers)}
    for tensor, first in firsts.items():
        by_buffer[tensor.buffer].append((first, tensor.number, tensor))
    new = tuple.__new__
    return [
        [
            new(Lifetime, (tensor, first, lasts[tensor]))
            for first, _, tensor in sorted(by_buffer[buffer])
        ]
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


Ends = dict[Tensor, int]  # instruction numbers


def _ends(body: Body, touched: Touches) -> tuple[Ends, Ends]:
    """Return the first and the last instruction of each tensor's live range."""
    firsts, lasts = Ends(), Ends()
    for item in body:
        if isinstance(item, Loop):
            inside, after = _over_loop(item, touched)
            for tensor, first in inside.items():
                firsts.setdefault(tensor, first)
            lasts |= after
            continue
        number = item.number
        for touch in touched[number]:
            tensor = touch[0][0]
            if tensor not in firsts:
                firsts[tensor] = number
            lasts[tensor] = number
    return firsts, lasts


def _over_loop(loop: Loop, touched: Touches) -> tuple[Ends, Ends]:
    """Return the live ranges in a loop; tensors that it does not declare span all of it."""
    numbers = [instruction.number for instruction in instructions(loop.body)]
    firsts, lasts = _ends(loop.body, touched)
    for tensor in firsts:
        if loop.number not in tensor.scope:
            firsts[tensor], lasts[tensor] = numbers[0], numbers[-1]
    return firsts, lasts
