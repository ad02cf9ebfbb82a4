"""How much of a memory is in use at the most."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from nkic.allocate.liveness import Lifetime, lifetimes
from nkic.allocate.place import space_of
from nkic.ir.program import Program
from nkic.ir.tensors import Tensor
from nkic.machine.memory import Buffer


def peak(program: Program, buffer: Buffer) -> int:
    """Bytes per partition of `buffer` in use at some instruction, on the core that uses most.

    In program order: a schedule may let more tensors live at once, never at other addresses.
    Tensors side by side, on different partitions of the same bytes, count once for each.
    """
    space = space_of(buffer, program.target)
    found = 0
    for body in program.cores:
        now = 0
        for _, change in sorted(_changes(lifetimes(body, program.target, buffer), space.size)):
            now += change
            found = max(found, now)
    return min(found, space.capacity)


def _changes(lives: Sequence[Lifetime], size: Callable[[Tensor], int]) -> Iterator[tuple[int, int]]:
    """When bytes come into use and when they are free again; frees sort before claims."""
    for life in lives:
        yield life.first, size(life.tensor)
        yield life.last + 1, -size(life.tensor)
