"""An order of instructions that is planned together with memory.

This is list scheduling in which an instruction also waits for room for the tensors that it accesses
first. Tensors are admitted in the order of their first access in the program, as soon as there is
room: loads run ahead as far as memory allows, in the order in which they are needed, and a program
that fits in its own order cannot deadlock.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush

from nkic.allocate.liveness import Lifetime, lifetimes_in
from nkic.allocate.place import Space, space_of
from nkic.ir.dependence import DependenceGraph
from nkic.ir.effects import Touches, touches_of
from nkic.ir.program import Body, Instruction, instructions
from nkic.ir.renumber import renumbered
from nkic.machine.memory import MEMORIES
from nkic.machine.targets import Target
from nkic.schedule.order import ListScheduler, Orderer


def plan(
    body: Body, graph: DependenceGraph, target: Target, share: float, by_program: bool
) -> tuple[Body, DependenceGraph] | None:
    """Return `body`, which has no device loops or fixed addresses, in the planned order, or None.

    `share` is the fraction of each memory that is used. Among ready instructions, the longest path
    to the end goes first or, with `by_program`, the first in program order.
    """
    memories = [
        _Memory(space_of(buffer, target), lives, share)
        for buffer, lives in zip(MEMORIES, lifetimes_in(body, target, MEMORIES), strict=True)
    ]
    code = [*instructions(body)]
    planner = _Planner(Orderer(graph, target), code, memories, touches_of(body, target))
    if by_program:
        planner.priorities = range(len(code))
    order = planner.plan()
    return renumbered(tuple([code[index] for index in order]), graph) if order else None


class _Memory:
    """The free bytes of one memory, and its tensors in order of their first access."""

    def __init__(self, space: Space, lives: Sequence[Lifetime], share: float) -> None:
        self.sizes = {life.tensor.number: space.size(life.tensor) for life in lives}
        self.waiting = deque(life.tensor.number for life in lives)
        self.room = int(space.capacity * share)

    def admit(self) -> Iterable[int]:
        """Yield the next tensors, as many as fit."""
        while self.waiting and self.sizes[self.waiting[0]] <= self.room:
            tensor = self.waiting.popleft()
            self.room -= self.sizes[tensor]
            yield tensor

    def release(self, tensor: int) -> None:
        """Release the bytes of `tensor`, if it is in this memory."""
        self.room += self.sizes.get(tensor, 0)


class _Planner(ListScheduler):
    def __init__(
        self,
        orderer: Orderer,
        code: Sequence[Instruction],
        memories: Sequence[_Memory],
        touched: Touches,
    ) -> None:
        super().__init__(orderer, orderer.known(code))
        self.memories = memories
        tracked = {tensor for memory in memories for tensor in memory.sizes}
        self.tensors = [_tensors(touched, one.number) & tracked for one in code]
        self.users: dict[int, list[int]] = defaultdict(list)
        for index, tensors in enumerate(self.tensors):
            self.missing[index] += len(tensors)
            for tensor in tensors:
                self.users[tensor].append(index)
        self.remaining = {tensor: len(users) for tensor, users in self.users.items()}
        self.last = dict.fromkeys(self.users, 0)
        self.ends: list[tuple[int, int]] = []  # when a tensor is released, and its number

    def plan(self) -> list[int] | None:
        """Return the code in order of issue, or None on deadlock."""
        self.begin()
        self._admit(self.orderer.now)
        order: list[int] = []
        issues = self.issues()
        while len(order) < len(self.code):
            if not self._release_until_next():
                return None
            order.append(next(issues))
            self._record_uses(order[-1])
        return order

    def _release_until_next(self) -> bool:
        """Release the tensors that end before the next start; return whether there is one."""
        start = self.next_start()
        while self.ends and (start is None or self.ends[0][0] <= start):
            now, tensor = heappop(self.ends)
            for memory in self.memories:
                memory.release(tensor)
            self._admit(now)
            start = self.next_start()
        return start is not None

    def _admit(self, now: int) -> None:
        for memory in self.memories:
            for tensor in memory.admit():
                for index in self.users[tensor]:
                    self.ready_at[index] = max(self.ready_at[index], now)
                    self.release(index)

    def _record_uses(self, index: int) -> None:
        done = self.done[index] + self.orderer.semaphore_ps
        for tensor in sorted(self.tensors[index]):
            self.last[tensor] = max(self.last[tensor], done)
            self.remaining[tensor] -= 1
            if not self.remaining[tensor]:
                heappush(self.ends, (self.last[tensor], tensor))


def _tensors(touched: Touches, number: int) -> set[int]:
    return {touch.pattern.tensor.number for touch in touched[number]}
