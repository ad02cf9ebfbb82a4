"""The memory use of a program, for the resource line."""

from __future__ import annotations

from nkic.allocate.place import space_of
from nkic.ir.effects import tensors_of
from nkic.ir.program import Body, Program
from nkic.machine.memory import Buffer


def peak(program: Program, buffer: Buffer) -> int:
    """Return the bytes per partition of `buffer` that tensors ever occupy, on the fullest core.

    Tensors that follow one another at the same address count once.
    """
    return max((_occupied(body, program, buffer) for body in program.cores), default=0)


def _occupied(body: Body, program: Program, buffer: Buffer) -> int:
    space = space_of(buffer, program.target)
    tensors = [program.tensors[number] for number in tensors_of(body, program.target)]
    places = {(program.addresses[t.number].byte, t.bytes) for t in tensors if t.buffer is buffer}
    ranges = []
    for first, size in places:  # few ranges: neighbouring tensors share addresses
        end = first + max(1, size)
        ranges.append((first // space.align * space.align, -(-end // space.align) * space.align))
    total = end = 0
    for low, high in sorted(ranges):
        total += max(0, high - max(low, end))
        end = max(end, high)
    return min(total, space.capacity)
