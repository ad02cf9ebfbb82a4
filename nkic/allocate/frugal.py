"""A memory-saving order: the instruction that frees most, or takes least, goes first.

Another order may have freed bytes that program order still holds. Among the ready instructions, the
one that leaves the fewest bytes in use goes next; ties are broken by program order or its reverse.
Bytes are weighted by partitions, since tensors of at most 64 partitions may be placed side by side.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from nkic.ir.dependence import DependenceGraph
from nkic.ir.effects import Touches, touches_of
from nkic.ir.program import Body, Instruction, Loop
from nkic.ir.renumber import renumbered
from nkic.ir.tensors import Tensor
from nkic.machine.targets import Target

MAX_INSTRUCTIONS = 400  # instructions: each step scans all that are ready


def frugal(
    body: Body, graph: DependenceGraph, target: Target, backwards: bool
) -> tuple[Body, DependenceGraph] | None:
    """Return the program in the memory-saving order.

    Return None if it is long, or contains device loops or instructions that must not move.
    """
    code = [item for item in body if not isinstance(item, Loop)]
    immovable = any(instruction.pinned or instruction.row.is_rendezvous for instruction in code)
    if len(code) < len(body) or len(code) > MAX_INSTRUCTIONS or immovable:
        return None
    return renumbered(tuple(_Order(code, graph, target, backwards).go()), graph)


class _Order:
    def __init__(
        self, code: list[Instruction], graph: DependenceGraph, target: Target, backwards: bool
    ) -> None:
        self.code = {instruction.number: instruction for instruction in code}
        self.sign = -1 if backwards else 1
        touched = touches_of(tuple(code), target)
        self.tensors = {number: _tensors(touched, number) for number in self.code}
        self.left = Counter(t for tensors in self.tensors.values() for t in tensors)
        self.held: set[Tensor] = set()
        self.waiters: dict[int, list[int]] = defaultdict(list)
        self.missing: Counter[int] = Counter()
        for number in self.code:
            for source in {e.source for e in graph.sources(number)} & self.code.keys():
                self.waiters[source].append(number)
                self.missing[number] += 1

    def go(self) -> Iterable[Instruction]:
        """Yield the instructions in their new order."""
        ready = {number for number in self.code if not self.missing[number]}
        while ready:
            number = min(ready, key=self._price)
            ready.remove(number)
            yield self.code[number]
            self._take(number)
            for waiter in self.waiters[number]:
                self.missing[waiter] -= 1
                if not self.missing[waiter]:
                    ready.add(waiter)

    def _price(self, number: int) -> tuple[int, int]:
        """Return the change in bytes in use after the instruction, and a tie-breaker."""
        tensors = self.tensors[number]
        allocated = sum(_size(tensor) for tensor in tensors if tensor not in self.held)
        freed = sum(_size(tensor) for tensor in tensors if self.left[tensor] == 1)
        return allocated - freed, self.sign * number

    def _take(self, number: int) -> None:
        for tensor in self.tensors[number]:
            self.held.add(tensor)
            self.left[tensor] -= 1


def _tensors(touched: Touches, number: int) -> frozenset[Tensor]:
    tensors = (touch.pattern.tensor for touch in touched[number])
    return frozenset(tensor for tensor in tensors if tensor.on_chip)


def _size(tensor: Tensor) -> int:
    return tensor.bytes * tensor.partitions
