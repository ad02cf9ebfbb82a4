"""The items of a body as seen by SBUF: the tiles that each needs, and whether it is repeatable."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from nkic.allocate.liveness import lifetimes, most_at_once
from nkic.allocate.place import Space
from nkic.ir.effects import Touches, state_effects, touches_of
from nkic.ir.program import Body, Instruction, Item, Loop, Program, instructions
from nkic.ir.tensors import AccessPattern, Tensor
from nkic.machine.targets import Target


class Step(NamedTuple):
    """An instruction, or a device loop as a whole.

    `tensors` are the SBUF tensors that it accesses but does not declare, each once; `written` has
    the numbers of those that it writes. `inner` is the peak of its own tensors, in bytes per
    partition.
    """

    item: Item
    tensors: tuple[Tensor, ...]
    written: frozenset[int]
    inner: int


def steps(body: Body, target: Target, space: Space) -> list[Step]:
    """Return the items of `body`, in order."""
    touched = touches_of(body, target)
    return [_step(item, touched, target, space) for item in body]


def _step(item: Item, touched: Touches, target: Target, space: Space) -> Step:
    accessed: dict[Tensor, bool] = {}
    number = item.number if isinstance(item, Loop) else -1
    for instruction in instructions((item,)):
        for touch in touched[instruction.number]:
            tensor = touch.pattern.tensor
            if tensor.buffer is space.buffer and number not in tensor.scope:
                accessed[tensor] = accessed.get(tensor, False) or touch.writes
    written = frozenset(tensor.number for tensor, writes in accessed.items() if writes)
    inner = _inner(item, target, space) if isinstance(item, Loop) else 0
    return Step(item, tuple(accessed), written, inner)


def _inner(loop: Loop, target: Target, space: Space) -> int:
    """Return the peak of the bytes of tensors that a loop declares."""
    lives = lifetimes((loop,), target, space.buffer)
    return most_at_once([life for life in lives if loop.number in life.tensor.scope], space.size)


def immovable(program: Program) -> frozenset[int]:
    """Return the tensors that must not move: those at fixed addresses, and those in rendezvous."""
    numbers = {tensor.number for tensor in program.tensors if tensor.fixed is not None}
    for body in program.cores:
        for instruction in instructions(body):
            if instruction.row.is_rendezvous:
                numbers |= {
                    o.tensor.number for o in instruction.operands if isinstance(o, AccessPattern)
                }
    return frozenset(numbers)


def constant_tensors(program: Program) -> frozenset[int]:
    """Return the tensors in HBM that no instruction of any core writes."""
    written: set[int] = set()
    for body in program.cores:
        for touches in touches_of(body, program.target).values():
            written |= {touch.pattern.tensor.number for touch in touches if touch.writes}
    hbm_tensors = (tensor for tensor in program.tensors if not tensor.on_chip)
    return frozenset(tensor.number for tensor in hbm_tensors if tensor.number not in written)


def repeatable(
    item: Item, tensor: Tensor, touched: Touches, target: Target, constants: Collection[int]
) -> bool:
    """Return whether `item`, the first writer of `tensor`, computes the same at any later position.

    It must write nothing else, and read only the tensors `constants`.
    """
    if not isinstance(item, Instruction) or item.pinned or item.after or item.row.is_rendezvous:
        return False
    effects = state_effects(item, target)
    if effects.reads or effects.writes:
        return False
    return all(_reads_constants(item, tensor, touched, constants))


def _reads_constants(
    item: Instruction, tensor: Tensor, touched: Touches, constants: Collection[int]
) -> Iterator[bool]:
    for touch in touched[item.number]:
        yield touch.pattern.dynamic is None
        if touch.writes:
            yield touch.pattern.tensor is tensor and not touch.reads
        else:
            yield touch.pattern.tensor.number in constants
