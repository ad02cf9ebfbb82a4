"""Postpone first writes until their results are needed, if live ranges are too long.

A kernel may fill many tiles long before it uses them; in program order all of them are live from
then on. An instruction whose result is not needed for a while, and that does not extend another
live range, moves to just before the first instruction that depends on it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass, replace

from nkic.ir.dependence import DependenceGraph
from nkic.ir.effects import Touches, touches_of
from nkic.ir.program import Body, Instruction, Item, Loop, instructions
from nkic.ir.renumber import renumbered
from nkic.machine.memory import Buffer
from nkic.machine.targets import Target


def sink(
    body: Body, graph: DependenceGraph, tight: Collection[Buffer], target: Target
) -> tuple[Body, DependenceGraph]:
    """Return the program in an order that shortens the live ranges in the `tight` memories.

    Live ranges in the other memories do not grow. The instructions are renumbered in the new order,
    in the body and in the graph.
    """
    order = _Order(body, graph, touches_of(body, target), tight)
    return renumbered(order.body(body), graph)


@dataclass
class _Use:
    """The item positions of a tensor's first read and last access."""

    read: int
    last: int


class _Order:
    """Reorders bodies; a device loop keeps its position, and its body is reordered separately."""

    def __init__(
        self, body: Body, graph: DependenceGraph, touched: Touches, tight: Collection[Buffer]
    ) -> None:
        self.graph = graph
        self.touched = touched
        self.tight = tight
        self.dependents: dict[int, list[int]] = defaultdict(list)
        for instruction in instructions(body):
            for edge in graph.sources(instruction.number):
                if not edge.distance:
                    self.dependents[edge.source].append(instruction.number)

    def body(self, body: Body, loops: tuple[int, ...] = ()) -> Body:
        """Return `body`, nested in the loops of these numbers, in its new order."""
        items = [self._loop(item, loops) if isinstance(item, Loop) else item for item in body]
        uses = self._uses(items, loops)
        anchors = self._anchors(items, uses)
        keys = [(a, a == at, at) for at, a in enumerate(anchors)]
        return tuple(items[at] for _, _, at in sorted(keys))

    def _loop(self, loop: Loop, loops: tuple[int, ...]) -> Loop:
        return replace(loop, body=self.body(loop.body, (*loops, loop.number)))

    def _anchors(self, items: list[Item], uses: dict[int, _Use]) -> list[int]:
        """Return, for each item, the position of the item that it moves before, or its own."""
        at_item = {
            instruction.number: at
            for at, item in enumerate(items)
            for instruction in instructions((item,))
        }
        anchors = list(range(len(items)))
        for at in reversed(anchors.copy()):
            item = items[at]
            if isinstance(item, Loop) or item.pinned or item.row.is_rendezvous:
                continue
            dependents = (
                at_item.get(number, len(items)) for number in self.dependents[item.number]
            )
            target = min((anchors[d] for d in dependents if d < len(items)), default=at)
            if target > at + 1 and self._gains(item, at, target, uses):
                anchors[at] = target
        return anchors

    def _gains(self, item: Instruction, at: int, target: int, uses: dict[int, _Use]) -> bool:
        """Return whether the move frees more bytes than it holds, and extend the live ranges."""
        freed: Counter[Buffer] = Counter()
        longer = []
        for touch in self.touched[item.number]:
            tensor = touch.pattern.tensor
            use = uses.get(tensor.number)
            if use is None:
                continue
            if touch.writes and not touch.reads and use.read > at:
                freed[tensor.buffer] += tensor.bytes
            elif touch.reads and use.last < target:
                if tensor.fixed is not None:
                    return False  # its bytes may belong to another tensor afterwards
                freed[tensor.buffer] -= tensor.bytes
                longer.append(use)
        if min(freed.values(), default=0) < 0 or not any(freed[b] > 0 for b in self.tight):
            return False
        for use in longer:
            use.last = target
        return True

    def _uses(self, items: list[Item], loops: tuple[int, ...]) -> dict[int, _Use]:
        """Return the tensors declared in this body, by number."""
        uses: dict[int, _Use] = {}
        for at, item in enumerate(items):
            for instruction in instructions((item,)):
                for touch in self.touched[instruction.number]:
                    tensor = touch.pattern.tensor
                    if not tensor.on_chip or tensor.scope != loops:
                        continue
                    use = uses.setdefault(tensor.number, _Use(len(items), at))
                    use.last = at
                    use.read = min(use.read, at) if touch.reads else use.read
        return uses
