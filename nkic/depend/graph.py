"""Builds the dependence graph of one core in a single walk over its body.

A device loop's body is walked twice: edges that only the second walk finds, from inside the
loop, belong to the previous iteration (`distance` 1).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from nkic.ir.dependence import DependenceGraph, Edge
from nkic.ir.effects import Touch, cells_of, state_effects, stateful_of, touches_of
from nkic.ir.program import Body, Instruction, Loop, Program, instructions
from nkic.machine.operands import no_effects
from nkic.machine.targets import Target


def depend(program: Program) -> tuple[DependenceGraph, ...]:
    """The dependence graph of each core."""
    return tuple(_Walk(body, program.target).graph() for body in program.cores)


class _Cell:
    """Who touched a cell last."""

    __slots__ = ("readers", "writer")

    def __init__(self) -> None:
        self.writer = -1
        self.readers: list[int] = []


class _Walk:
    """State of the walk: the last accesses to every cell and every piece of engine state."""

    def __init__(self, body: Body, target: Target) -> None:
        self.body = body
        self.target = target
        self.touched = touches_of(body, target)
        self.stateful = stateful_of(body, target)
        self.cells = cells_of(body, target)
        self.last: dict[int, list[_Cell]] = {
            tensor: [_Cell() for _ in range(cells.count)] for tensor, cells in self.cells.items()
        }
        self.state: dict[str, _Cell] = defaultdict(_Cell)
        self.edges: dict[int, tuple[Edge, ...]] = {}
        self.first_touches: dict[int, dict[int, None]] = defaultdict(dict)
        self.pinned = (0, -1)
        # The first instruction of the innermost loop that is walked for the second time.
        self.first_inside: int | None = None

    def graph(self) -> DependenceGraph:
        self.walk(self.body)
        return DependenceGraph(
            self.edges,
            {tensor: tuple(found) for tensor, found in self.first_touches.items()},
            {tensor: _closers(cells) for tensor, cells in self.last.items()},
        )

    def walk(self, body: Body) -> None:
        for item in body:
            if isinstance(item, Instruction):
                self.visit(item)
            else:
                self.walk_loop(item)

    def walk_loop(self, loop: Loop) -> None:
        self.walk(loop.body)
        outer = self.first_inside
        self.first_inside = next((i.number for i in instructions(loop.body)), None)
        self.walk(loop.body)
        self.first_inside = outer

    def visit(self, instruction: Instruction) -> None:
        number = instruction.number
        found = dict.fromkeys(self.edges.get(number, ()))
        for touch in self.touched[number]:
            self.touch(number, touch, found)
        if instruction.row.effects is not no_effects or number in self.stateful:
            self.touch_state(instruction, found)
        for source in instruction.after:
            found[Edge(source, "user")] = None
        if instruction.pinned or self.pinned[0]:
            self.pin(instruction, found)
        if found:
            self.edges[number] = tuple(found)

    def touch(self, number: int, touch: Touch, found: dict[Edge, None]) -> None:
        pattern, reads, writes, area = touch
        tensor = pattern.tensor.number
        cells = self.last[tensor]
        for index in self.cells[tensor][area] if len(cells) > 1 else (0,):
            cell = cells[index]
            if cell.writer < 0 and not cell.readers:
                self.first_touches[tensor][number] = None
            self.meet(number, cell, reads, writes, found)

    def meet(
        self, number: int, cell: _Cell, reads: bool, writes: bool, found: dict[Edge, None]
    ) -> None:
        """Adds the edges of one access to one cell, and makes it the cell's last."""
        if reads and cell.writer >= 0:
            self.add(number, cell.writer, "raw", found)
        if writes:
            if not reads and not cell.readers and cell.writer >= 0:
                self.add(number, cell.writer, "waw", found)
            for reader in cell.readers:
                self.add(number, reader, "war", found)
            cell.writer = number
            cell.readers = []
        elif not cell.readers or cell.readers[-1] != number:
            cell.readers.append(number)

    def add(self, number: int, source: int, kind: str, found: dict[Edge, None]) -> None:
        if self.first_inside is None or source < self.first_inside:
            if source != number:
                found[tuple.__new__(Edge, (source, kind, 0))] = None
        elif Edge(source, kind) not in found:
            found[Edge(source, kind, 1)] = None

    def touch_state(self, instruction: Instruction, found: dict[Edge, None]) -> None:
        effects = state_effects(instruction, self.target)
        for name in dict.fromkeys((*effects.reads, *effects.writes)):
            before: dict[Edge, None] = {}
            writes = name in effects.writes
            reads = name in effects.reads
            self.meet(instruction.number, self.state[name], reads, writes, before)
            for edge in before:
                found[Edge(edge.source, "state", edge.distance)] = None

    def pin(self, instruction: Instruction, found: dict[Edge, None]) -> None:
        """Chains the instructions of a no_reorder region in program order."""
        region, previous = self.pinned
        if instruction.pinned and region == instruction.pinned and previous != instruction.number:
            self.add(instruction.number, previous, "pin", found)
        self.pinned = (instruction.pinned, instruction.number)


def _closers(cells: Iterable[_Cell]) -> tuple[int, ...]:
    """The last accesses to any of the cells: its readers, or its writer if nobody read."""
    found: dict[int, None] = {}
    for cell in cells:
        for number in cell.readers or ((cell.writer,) if cell.writer >= 0 else ()):
            found[number] = None
    return tuple(sorted(found))
