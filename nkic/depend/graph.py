"""Builds the dependence graph of one core in a single walk over its body.

The body of a device loop is walked twice: edges within the loop that only the second walk finds are
loop-carried (`distance` 1).
"""

from __future__ import annotations

from collections.abc import Sequence

from nkic.ir.dependence import DependenceGraph, Edge
from nkic.ir.effects import cells_of, state_effects, stateful_of, touches_of
from nkic.ir.program import Body, Instruction, Loop, Program, instructions
from nkic.machine.operands import no_effects
from nkic.machine.targets import Target


def depend(program: Program) -> tuple[DependenceGraph, ...]:
    """Return the dependence graph of each core."""
    return tuple(_Walk(body, program.target).graph() for body in program.cores)


class _Walk:
    """The state of the walk: the last accesses to every cell and every piece of engine state."""

    def __init__(self, body: Body, target: Target) -> None:
        self.body = body
        self.target = target
        self.touched = touches_of(body, target)
        self.stateful = stateful_of(body, target)
        self.cells = cells_of(body, target)
        count = max((cells[-1] + 1 for cells in self.cells.values()), default=0)
        self.writers = [-1] * count  # by cell: its last writer, and the readers since
        self.readers: list[list[int] | None] = [None] * count
        self.state: dict[str, int] = {}  # the cell of each piece of engine state, by name
        self.edges: dict[int, tuple[Edge, ...]] = {}
        self.first_touches: dict[int, list[int]] = {}
        self.pinned = (0, -1)
        # The first instruction of the innermost loop that is being walked for the second time.
        self.first_inside: int | None = None

    def graph(self) -> DependenceGraph:
        self.walk(self.body)
        return DependenceGraph(
            self.edges,
            {tensor: tuple(touches) for tensor, touches in self.first_touches.items()},
            {tensor: self.closers(cells) for tensor, cells in self.cells.items()},
        )

    def closers(self, cells: Sequence[int]) -> tuple[int, ...]:
        """Return the last accesses to any of the cells: its readers, or else its writer."""
        last = self.readers[cells[0]] or self.writers[cells[0] : cells[0] + 1]
        if len(cells) == len(last) == 1:  # most tensors
            return tuple(last)
        numbers: set[int] = set()
        for cell in cells:
            numbers.update(self.readers[cell] or self.writers[cell : cell + 1])
        return tuple(sorted(numbers - {-1}))

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
        number, writers, readers = instruction.number, self.writers, self.readers
        edges = {} if self.first_inside is None else dict.fromkeys(self.edges.get(number, ()))
        for pattern, reads, writes, area in self.touched[number]:
            for cell in area.cells:
                if writers[cell] < 0 and not readers[cell]:
                    self.first_access(number, pattern.tensor.number, cell, writes)
                else:
                    self.access(number, cell, reads, writes, edges)
        if instruction.row.effects is not no_effects or number in self.stateful:
            self.touch_state(instruction, edges)
        for source in instruction.after:
            edges[Edge(source, "user")] = None
        if instruction.pinned or self.pinned[0]:
            self.pin(instruction, edges)
        if edges:
            self.edges[number] = tuple(edges)

    def first_access(self, number: int, tensor: int, cell: int, writes: bool) -> None:
        """Record the first access to a cell of a tensor, which waits for nothing."""
        if writes:
            self.writers[cell] = number
        else:
            self.readers[cell] = [number]
        first = self.first_touches.get(tensor)
        if first is None:
            self.first_touches[tensor] = [number]
        elif first[-1] != number:
            first.append(number)

    def access(
        self, number: int, cell: int, reads: bool, writes: bool, edges: dict[Edge, None]
    ) -> None:
        """Add the edges of one access to one cell, and record the access."""
        writer, readers = self.writers[cell], self.readers[cell]
        if reads and writer >= 0:
            self.add(number, writer, "raw", edges)
        if writes:
            if not reads and not readers and writer >= 0:
                self.add(number, writer, "waw", edges)
            for reader in readers or ():
                self.add(number, reader, "war", edges)
            self.writers[cell] = number
            self.readers[cell] = None
        elif not readers:
            self.readers[cell] = [number]
        elif readers[-1] != number:
            readers.append(number)

    def add(self, number: int, source: int, kind: str, edges: dict[Edge, None]) -> None:
        if self.first_inside is None or source < self.first_inside:
            if source != number:
                edges[tuple.__new__(Edge, (source, kind, 0))] = None
        elif Edge(source, kind) not in edges:
            edges[Edge(source, kind, 1)] = None

    def touch_state(self, instruction: Instruction, edges: dict[Edge, None]) -> None:
        effects = state_effects(instruction, self.target)
        for name in dict.fromkeys((*effects.reads, *effects.writes)):
            accesses: dict[Edge, None] = {}
            writes = name in effects.writes
            reads = name in effects.reads
            self.access(instruction.number, self.state_cell(name), reads, writes, accesses)
            for edge in accesses:
                edges[Edge(edge.source, "state", edge.distance)] = None

    def state_cell(self, name: str) -> int:
        cell = self.state.get(name)
        if cell is None:
            cell = self.state[name] = len(self.writers)
            self.writers.append(-1)
            self.readers.append(None)
        return cell

    def pin(self, instruction: Instruction, edges: dict[Edge, None]) -> None:
        """Chain the instructions of a no_reorder region in program order."""
        region, previous = self.pinned
        if instruction.pinned and region == instruction.pinned and previous != instruction.number:
            self.add(instruction.number, previous, "pin", edges)
        self.pinned = (instruction.pinned, instruction.number)
