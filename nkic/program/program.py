"""Program: the output of specialise, and the input of every later stage.

A program has one body per physical core. A body is a sequence of instructions and device loops in
program order. Stages never modify a program in place: they return a new one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import count
from math import prod
from typing import Any, NamedTuple, cast

from nkic.base.source import CallChain
from nkic.machine.dtypes import DType
from nkic.machine.operands import Facts, Register, Row, Tile, Value, trips
from nkic.machine.patterns import Pattern, RunTimeOffset
from nkic.machine.targets import Address, Buffer, Engine, Target

# ---- Tensors (storage), views of them, and the access patterns that instructions hold -----------


class Role(Enum):
    """The role of a tensor for the kernel's caller."""

    INPUT = "input"
    OUTPUT = "output"
    INTERNAL = "internal"
    CONSTANT = "constant"


class Tensor:
    """A piece of storage: declared once, compared by identity, immutable once
    recorded (until the kernel returns, a result may lose and regain its number).

    `shape` starts with the partition dimension if `buffer` is on chip. `fixed` is the address that
    the kernel requested, if any. `scope` is the loop body (a path of loop numbers) that declares
    the tensor, () at top level. The role is known only when the kernel returns, so the Program has
    it.
    """

    __slots__ = (
        *("at", "buffer", "bytes", "dtype", "first", "fixed", "free", "name", "number"),
        *("on_chip", "partitions", "scope", "shape"),
    )

    def __init__(
        self,
        number: int,
        name: str,
        dtype: DType,
        shape: tuple[int, ...],
        buffer: Buffer,
        at: CallChain,
        fixed: Address | None = None,
        scope: tuple[int, ...] = (),
    ) -> None:
        self.number = number
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.buffer = buffer
        self.at = at
        self.fixed = fixed
        self.scope = scope
        self.on_chip = buffer.on_chip
        self.first = fixed.partition if fixed is not None else 0  # for rules; allocate may move it
        self.partitions = shape[0] if self.on_chip else 0  # 0 in HBM
        self.free = prod(shape[1:] if self.on_chip else shape)  # per partition; in HBM, all
        self.bytes = self.free * dtype.size  # per partition; in HBM, all

    def __repr__(self) -> str:
        sizes = ", ".join(map(str, self.shape))
        return f"%{self.number} {self.name}: {self.dtype.name}[{sizes}] {self.buffer.value}"


class View(NamedTuple):
    """A shape over a tensor's storage; strides and offset are in elements of `dtype`.

    On-chip storage is (partition, free) in row-major order: the partition dimension's stride is the
    number of elements per partition, as NKI defines it.
    """

    tensor: Tensor
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: DType
    dynamic: Dynamic | None = None

    @property
    def pitch(self) -> int:
        """Elements of `dtype` per partition of the storage (on chip)."""
        return self.tensor.bytes // self.dtype.size

    def tile(self) -> Tile:
        """Return the view as rules see it."""
        dims = tuple(zip(self.strides, self.shape, strict=True))
        tensor = self.tensor
        if not tensor.on_chip:
            return Tile(tensor.buffer, self.dtype, 0, 0, dims, *addressing(self.dynamic))
        start = tensor.first + self.offset // self.pitch
        return Tile(
            tensor.buffer, self.dtype, start, self.shape[0], dims[1:], *addressing(self.dynamic)
        )


class AccessPattern(Pattern[Tensor, "Source"]):
    """The operand of an instruction after lower: an access pattern over a tensor of the program."""

    __slots__ = ()

    def tile(self) -> Tile:
        """Return the pattern as rules and costs see it."""
        return Tile(
            self.tensor.buffer,
            self.dtype,
            self.tensor.first + self.start,
            self.partitions,
            self.dims,
            *addressing(self.dynamic),
        )


Source = View | AccessPattern | Register
Dynamic = RunTimeOffset[Source]


def addressing(dynamic: Dynamic | None) -> tuple[bool, bool, Tile | None]:
    """Return the fields `dynamic`, `indexed` and `offsets` of a tile."""
    if dynamic is None:
        return False, False, None
    source = dynamic.source
    offsets = None if isinstance(source, Register) else source.tile()
    return True, dynamic.kind != "scalar", offsets


# --------------------------------------------------------------------------------------------------

Operand = View | AccessPattern | Register | float | int | None


def cost_key(operand: Operand) -> object:
    """Return a key such that operands with equal keys have equal costs and the same choice of
    engine.
    """
    if type(operand) is AccessPattern:
        return operand.cost_key(operand.tensor.buffer)
    return operand


class Work:
    """A kind of work, by identity. Lowered instructions of one kind cost the same on an engine."""

    __slots__ = ()


class Instruction(NamedTuple):
    """One instruction. `operands` and `attributes` follow the order of its row.

    `number` is unique within a core and increases in program order, loop bodies included. `engine`
    is None until lower chooses one. `after` holds the numbers of instructions that the kernel
    ordered before this one (`depends_on`, `with_schedule`). `iterations` names the iteration of
    each enclosing Python loop, outermost first: "i=3 j=0". `work` is None where it is not known:
    before lower, and in a program that was read from text. A change of operands or attributes
    resets it; it holds for one engine.
    """

    row: Row
    operands: tuple[Operand, ...]
    attributes: tuple[Any, ...]
    engine: Engine | None
    at: CallChain
    number: int
    name: str = ""
    after: tuple[int, ...] = ()
    pinned: int = 0  # > 0: the no_reorder region in which it keeps program order
    work: Work | None = None
    iterations: str = ""

    def operand(self, name: str) -> Operand:
        return self.operands[self.row.operand_index[name]]

    def attribute(self, name: str) -> Any:
        return self.attributes[self.row.attribute_index[name]]

    def facts(self, target: Target) -> Facts:
        """Return the instruction as the functions of the instruction table see it."""
        names = self.row.operand_index
        values: dict[str, Value] = {
            name: _seen(self.operands[index]) for name, index in names.items()
        }
        attributes = {name: self.attributes[i] for name, i in self.row.attribute_index.items()}
        return Facts(target, values, attributes, self.engine)


def _seen(operand: Operand) -> Value:
    return operand.tile() if isinstance(operand, View | AccessPattern) else operand


@dataclass(frozen=True)
class Loop:
    """A device loop.

    `counter` takes the values start, start + step, … below `stop`, which may be a register. A
    `while` loop has a `condition` instead: it runs until that register is zero.
    """

    number: int
    body: tuple[Item, ...]
    at: CallChain
    counter: Register | None = None
    start: int | Register = 0
    stop: int | Register = 0
    step: int = 1
    condition: Register | None = None

    @property
    def trips(self) -> int | None:
        """The trip count; None if a register determines it."""
        return None if self.condition is not None else trips(self.start, self.stop, self.step)


Item = Instruction | Loop
Returned = int | tuple[int | None, ...] | None
Body = tuple[Item, ...]


class TensorParameter(NamedTuple):
    """An input or output of the kernel, with the name used in npz files."""

    name: str
    tensor: Tensor


@dataclass(frozen=True)
class Program:
    """A specialised kernel.

    `inputs` are in signature order. `outputs` are in return order, named output_0 …, followed by
    inputs that are updated in place, under their own names. `addresses` maps on-chip tensors, by
    number, to the addresses that allocate assigns. `constants` maps tensor numbers to initial
    contents. `messages` are what the kernel printed at compile time. `returned` is the structure of
    the return value: the number of an output, or a tuple of them. `reads` maps the paths of data
    files that became constants to their hashes.
    """

    name: str
    target: Target
    tensors: tuple[Tensor, ...]
    inputs: tuple[TensorParameter, ...]
    outputs: tuple[TensorParameter, ...]
    cores: tuple[Body, ...]
    constants: Mapping[int, bytes] = field(default_factory=dict)
    addresses: Mapping[int, Address] = field(default_factory=dict)
    messages: tuple[str, ...] = ()
    arguments: Mapping[str, str] = field(default_factory=dict)  # for people
    notes: Mapping[str, str] = field(default_factory=dict)  # how it was compiled, for people
    returned: Returned = None
    reads: Mapping[str, str] = field(default_factory=dict)
    lacks_grid: bool = False  # it asks for its place in a launch grid, and is compiled without one

    def role(self, tensor: Tensor) -> Role:
        if any(p.tensor is tensor for p in self.inputs):
            return Role.INPUT
        if any(p.tensor is tensor for p in self.outputs):
            return Role.OUTPUT
        return Role.CONSTANT if tensor.number in self.constants else Role.INTERNAL


def instructions(body: Body) -> Iterator[Instruction]:
    """Return every instruction of `body` in program order, loop bodies included once."""
    if Loop not in set(map(type, body)):  # no loops: the common case
        return iter(cast("tuple[Instruction, ...]", body))
    return _nested(body)


def _nested(body: Body) -> Iterator[Instruction]:
    for item in body:
        if isinstance(item, Instruction):
            yield item
        else:
            yield from _nested(item.body)


def paths(program: Program) -> tuple[str, ...]:
    """Return the source files of the program's instructions and tensors, in order of first use."""
    chains = {id(tensor.at): tensor.at for tensor in program.tensors}
    for body in program.cores:
        chains |= {id(instruction.at): instruction.at for instruction in instructions(body)}
    return tuple(dict.fromkeys(s.path for chain in chains.values() for s in chain.frames()))


def lines(program: Program) -> set[tuple[str, int]]:
    """Return the source lines (path, number) of the program's instructions and tensors."""
    chains = {id(tensor.at): tensor.at for tensor in program.tensors}
    for body in program.cores:
        chains |= {id(instruction.at): instruction.at for instruction in instructions(body)}
    spans = {span for chain in chains.values() for span in chain.frames()}
    return {(s.path, n) for s in spans for n in range(s.line, max(s.line, s.end_line) + 1)}


def tiles(instruction: Instruction) -> Iterator[tuple[str, Tile]]:
    for name, index in instruction.row.operand_index.items():
        operand = instruction.operands[index]
        if isinstance(operand, View | AccessPattern):
            yield name, operand.tile()


# ---- The dependence graph: which instructions each instruction waits for ------------------------


class Edge(NamedTuple):
    """A dependence on instruction `source`, held by the instruction that waits for it.

    `kind` is raw, war or waw (memory), state (engine registers), user (depends_on), pin
    (no_reorder) or reuse (of freed bytes). A `distance` of 1 means the previous iteration of the
    innermost loop that contains both instructions.
    """

    source: int
    kind: str
    distance: int = 0


@dataclass(frozen=True)
class DependenceGraph:
    """The edges of one core, keyed by the number of the waiting instruction.

    `first_touches` and `last_touches` map a tensor number to the instructions that no other access
    to the tensor precedes, and that none follows. They are the instructions that wait when the
    tensor reuses freed bytes, and the ones to wait for when its own bytes are reused. Several reads
    of what nothing has written are all first. A tensor in HBM that several patterns read and
    nothing writes is in neither.
    """

    edges: Mapping[int, tuple[Edge, ...]]
    first_touches: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    last_touches: Mapping[int, tuple[int, ...]] = field(default_factory=dict)

    def sources(self, number: int) -> tuple[Edge, ...]:
        """Return the edges of instruction `number`: everything it waits for."""
        return self.edges.get(number, ())

    def plus(self, additional: Mapping[int, tuple[Edge, ...]]) -> DependenceGraph:
        if not additional:
            return self
        merged = dict(self.edges)
        for number, edges in additional.items():
            existing = merged.get(number)
            merged[number] = tuple(dict.fromkeys((*existing, *edges))) if existing else edges
        return replace(self, edges=merged)


# ------------------------------------------------------------------------------------------------
# Schedule: the program as streams, one per engine and DMA queue, ordered by semaphores.
# A stream runs its items in order. An item first waits: for each (semaphore, amount), it blocks
# until the semaphore is at least `amount`, then subtracts it. On completion it adds 1 to each
# semaphore it signals. Each semaphore has one signalling and one waiting stream, so counts do not
# depend on the order in which streams run.


class StreamId(NamedTuple):
    """The engine that runs a stream, and its DMA queue (0 for other engines)."""

    engine: Engine
    queue: int = 0

    def __str__(self) -> str:
        return f"dma{self.queue}" if self.engine is Engine.DMA else self.engine.value


class Wait(NamedTuple):
    semaphore: int
    amount: int


class Slot(NamedTuple):
    """An instruction in a stream; None makes an empty slot that only waits and signals."""

    instruction: Instruction | None
    waits: tuple[Wait, ...] = ()
    signals: tuple[int, ...] = ()


@dataclass(frozen=True)
class StreamLoop:
    """One stream's part of a device loop: its own items of the loop's body."""

    loop: Loop
    items: tuple[StreamItem, ...]


StreamItem = Slot | StreamLoop


@dataclass(frozen=True)
class Stream:
    id: StreamId
    items: tuple[StreamItem, ...]


@dataclass(frozen=True)
class Schedule:
    """A program and its streams, one tuple of streams per core.

    Semaphores are numbered per core. `estimate_ns` is the compiler's prediction of the run time; if
    `is_timed`, it is exactly (to the picosecond) the simulated time of a run. `busiest_ns` is the
    time that the busiest engine needs by itself, if known. With `serial`, no instructions overlap.
    """

    program: Program
    cores: tuple[tuple[Stream, ...], ...]
    estimate_ns: float = 0.0
    serial: bool = False
    is_timed: bool = field(default=False, compare=False)  # not part of a schedule's identity
    busiest_ns: float = field(default=0.0, compare=False)


def slots(items: tuple[StreamItem, ...]) -> Iterator[Slot]:
    """Yield every slot, loop bodies included once."""
    for item in items:
        if isinstance(item, Slot):
            yield item
        else:
            yield from slots(item.items)


# ------------------------------------------------------------------------------------------------
# Renumber a changed program, so that numbers increase in the body and match the graph.


def renumbered(reordered: Body, graph: DependenceGraph) -> tuple[Body, DependenceGraph]:
    """Return `reordered` and `graph` with the body's numbers reassigned in the body's new order."""
    old = [instruction.number for instruction in instructions(reordered)]
    numbers = dict(zip(old, sorted(old), strict=True))
    return tuple(_numbered(reordered, numbers)), _graph(graph, numbers)


def _numbered(body: Body, numbers: Mapping[int, int]) -> Iterator[Item]:
    for item in body:
        if isinstance(item, Loop):
            yield replace(item, body=tuple(_numbered(item.body, numbers)))
        else:
            after = tuple(numbers[number] for number in item.after)
            yield item._replace(number=numbers[item.number], after=after)


def _graph(graph: DependenceGraph, numbers: Mapping[int, int]) -> DependenceGraph:
    def edges(old_edges: tuple[Edge, ...]) -> tuple[Edge, ...]:
        return tuple(edge._replace(source=numbers[edge.source]) for edge in old_edges)

    def ends(touches: Mapping[int, tuple[int, ...]]) -> dict[int, tuple[int, ...]]:
        return {t: tuple(sorted(numbers[number] for number in old)) for t, old in touches.items()}

    return DependenceGraph(
        {numbers[number]: edges(old_edges) for number, old_edges in sorted(graph.edges.items())},
        ends(graph.first_touches),
        ends(graph.last_touches),
    )


def in_order(body: Body) -> Body:
    """Return the body with increasing numbers: parts of a split instruction share one before."""
    order, new = count(), dict[int, list[int]]()

    def numbered(body: Body) -> Body:
        return tuple(
            [
                replace(i, body=numbered(i.body)) if isinstance(i, Loop) else with_number(i)
                for i in body
            ]
        )

    def with_number(item: Instruction) -> Instruction:
        new.setdefault(item.number, []).append(number := next(order))
        return item._replace(number=number)

    def linked(body: Body) -> Body:
        return tuple(
            [
                replace(i, body=linked(i.body))
                if isinstance(i, Loop)
                else i._replace(after=tuple(n for old in i.after for n in new[old]))
                for i in body
            ]
        )

    return linked(numbered(body))
