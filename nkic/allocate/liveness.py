"""When a tensor's bytes are in use: from its first to its last access in program order."""

from __future__ import annotations

from typing import NamedTuple

from nkic.ir.effects import Touches, touches_of
from nkic.ir.program import Body, Loop, instructions
from nkic.ir.tensors import Tensor
from nkic.machine.memory import Buffer
from nkic.machine.targets import Target


class Lifetime(NamedTuple):
    """`tensor` is in use from instruction `first` to instruction `last`, both included."""

    tensor: Tensor
    first: int
    last: int

    def meets(self, other: Lifetime) -> bool:
        """Both are in use at some instruction."""
        return self.first <= other.last and other.first <= self.last


def lifetimes(body: Body, target: Target, buffer: Buffer) -> list[Lifetime]:
    """The lifetimes of the tensors of `buffer` that `body` touches, by first access.

    A tensor that a device loop touches but does not declare is in use during the whole loop.
    """
    found = _collect(body, touches_of(body, target), buffer)
    return sorted(found.values(), key=lambda life: (life.first, life.tensor.number))


def _collect(body: Body, touched: Touches, buffer: Buffer) -> dict[int, Lifetime]:
    """By tensor number."""
    found: dict[int, Lifetime] = {}
    last: dict[int, int] = {}  # of those that are touched again
    for item in body:
        if isinstance(item, Loop):
            for life in _collect(item.body, touched, buffer).values():
                _note(found, last, *_over_loop(life, item))
            continue
        for touch in touched[item.number]:
            tensor = touch.pattern.tensor
            if tensor.buffer is buffer:
                _note(found, last, tensor, item.number, item.number)
    for number, end in last.items():
        found[number] = found[number]._replace(last=end)
    return found


def _note(
    found: dict[int, Lifetime], lasts: dict[int, int], tensor: Tensor, first: int, last: int
) -> None:
    number = tensor.number
    old = found.get(number)
    if old is None:
        found[number] = Lifetime(tensor, first, last)
        return
    if first < old.first:
        found[number] = old._replace(first=first)
    if last > lasts.get(number, old.last):
        lasts[number] = last


def _over_loop(life: Lifetime, loop: Loop) -> Lifetime:
    if loop.number in life.tensor.scope:
        return life
    numbers = [i.number for i in instructions(loop.body)]
    return Lifetime(life.tensor, numbers[0], numbers[-1])
