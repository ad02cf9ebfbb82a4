"""Program: the output of specialise, and the input of every later stage.

A program has one body per physical core. A body is a sequence of instructions and device loops in
program order. Stages never modify a program in place: they return a new one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from nkic.base.source import CallChain
from nkic.ir.tensors import AccessPattern, Role, Tensor, View
from nkic.machine.engines import Engine
from nkic.machine.facts import Facts, Register, Tile, Value, trips
from nkic.machine.memory import Address
from nkic.machine.operands import Row
from nkic.machine.targets import Target

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
        """Return the operand called `name`."""
        return self.operands[self.row.operand_index[name]]

    def attribute(self, name: str) -> Any:
        """Return the attribute called `name`."""
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

    def role(self, tensor: Tensor) -> Role:
        """Return the role of `tensor` for the kernel's caller."""
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
    """Yield the tile operands with their names."""
    for name, index in instruction.row.operand_index.items():
        operand = instruction.operands[index]
        if isinstance(operand, View | AccessPattern):
            yield name, operand.tile()
