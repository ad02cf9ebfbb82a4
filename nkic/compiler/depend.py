"""Builds the dependence graph of one core in a single walk over its body.

The body of a device loop is walked twice: edges within the loop that only the second walk finds are
loop-carried (`distance` 1).
"""

from __future__ import annotations

from collections.abc import Sequence

from nkic.machine.operands import no_effects
from nkic.machine.targets import Target
from nkic.program.effects import accesses_of, state_effects
from nkic.program.program import Body, DependenceGraph, Edge, Instruction, Program, instructions


def depend(program: Program) -> tuple[DependenceGraph, ...]:
    return tuple(_Walk(body, program.target).graph() for body in program.cores)


class _Walk:
    """The state of the walk: the accesses to every cell and every piece of engine state."""

    def __init__(self, body: Body, target: Target) -> None:
        self.body = body
        self.target = target
        self.accesses = accesses_of(body, target)
        count = self.accesses.count
        self.openers = [-1] * count  # by cell: its first access
        self.further: dict[int, set[int]] = {}  # by cell: other reads before the first write
        self.writers = [-1] * count  # by cell: its last writer, and the readers since
        self.readers: list[list[int] | None] = [None] * count
        self.state: dict[str, int] = {}  # the cell of each piece of engine state, by name
        self.edges: dict[int, tuple[Edge, ...]] = {}
        self.pinned = (0, -1)
        # The first instruction of the innermost loop that is being walked for the second time.
        self.first_inside: int | None = None

    def graph(self) -> DependenceGraph:
        self.walk(self.body)
        first: dict[int, tuple[int, ...]] = {}
        last: dict[int, tuple[int, ...]] = {}
        cut = self.accesses.cut
        tensors = [tensor.number for tensor in self.accesses.first]
        cells = zip(tensors, self.openers, self.readers, self.writers, strict=False)
        for tensor, opener, readers, writer in cells:
            if tensor not in cut:
                first[tensor] = (opener,)
                last[tensor] = tuple(readers) if readers else (writer,)
        for cell in self.further:
            if cell < len(tensors):
                first[tensors[cell]] = self.first_accesses((cell,))
        for tensor, parts in cut.items():
            if parts:
                first[tensor] = self.first_accesses(parts)
                last[tensor] = self.closers(parts)
        return DependenceGraph(self.edges, first, last)

    def first_accesses(self, cells: Sequence[int]) -> tuple[int, ...]:
        """Return the accesses to any of the cells that need not follow another access to the cell:
        its first one, and all reads before its first write.
        """
        numbers = {self.openers[cell] for cell in cells}
        for cell in self.further.keys() & set(cells) if self.further else ():
            numbers |= self.further[cell]
        return tuple(sorted(numbers - {-1}))

    def closers(self, cells: Sequence[int]) -> tuple[int, ...]:
        """Return the last accesses to any of the cells: its readers, or else its writer."""
        numbers: set[int] = set()
        for cell in cells:
            numbers.update(self.readers[cell] or self.writers[cell : cell + 1])
        return tuple(sorted(numbers - {-1}))

    def walk(self, body: Body) -> None:
        for item in body:
            if isinstance(item, Instruction):
                self.visit(item)
            else:
                self.walk(item.body)
                outer = self.first_inside
                self.first_inside = next((i.number for i in instructions(item.body)), None)
                self.walk(item.body)
                self.first_inside = outer

    def visit(self, instruction: Instruction) -> None:
        number, cells = instruction.number, self.accesses.cells
        edges = {} if self.first_inside is None else dict.fromkeys(self.edges.get(number, ()))
        operands, uses = self.accesses.of(instruction)
        for index, reads, writes in uses:
            accessed = cells.get(id(operands[index]))
            if accessed:
                self.access(number, accessed, reads, writes, edges)
        if instruction.row.effects is not no_effects or number in self.accesses.stateful:
            self.touch_state(instruction, edges)
        for source in instruction.after:
            edges[Edge(source, "user")] = None
        if instruction.pinned or self.pinned[0]:
            self.pin(instruction, edges)
        if edges:
            self.edges[number] = tuple(edges)

    def access(
        self, number: int, cells: Sequence[int], reads: bool, writes: bool, edges: dict[Edge, None]
    ) -> None:
        """Add the edges of one access to some cells, and record the access."""
        for cell in cells:
            writer, readers = self.writers[cell], self.readers[cell]
            if writer < 0 and readers is None:
                self.openers[cell] = number
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
                if writer < 0:  # neither of two reads waits for the other
                    self.further.setdefault(cell, set()).add(number)

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
            cell = self.state_cell(name)
            self.access(instruction.number, (cell,), reads, writes, accesses)
            for edge in accesses:
                edges[Edge(edge.source, "state", edge.distance)] = None

    def state_cell(self, name: str) -> int:
        cell = self.state.get(name)
        if cell is None:
            cell = self.state[name] = len(self.writers)
            self.openers.append(-1)
            self.writers.append(-1)
            self.readers.append(None)
        return cell

    def pin(self, instruction: Instruction, edges: dict[Edge, None]) -> None:
        """Chain the instructions of a no_reorder region in program order."""
        region, previous = self.pinned
        if instruction.pinned and region == instruction.pinned and previous != instruction.number:
            self.add(instruction.number, previous, "pin", edges)
        self.pinned = (instruction.pinned, instruction.number)
