"""Program: what specialise makes and every later stage reads.

A program has one body per physical core; a body is instructions and device loops, in program
order. Stages never edit a program in place: they return a new one.
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
    """What costs and the choice of an engine see of an operand: equal ones cost the same."""
    if type(operand) is AccessPattern:
        return operand.cost_key(operand.tensor.buffer)
    return operand


class Instruction(NamedTuple):
    """One instruction. `operands` and `attributes` follow the order of its row.

    `number` is unique within its core and grows in program order, loop bodies included.
    `engine` is None until lower chooses it. `after` are numbers of instructions that the
    kernel ordered before this one (`depends_on`, `with_schedule`). `turns` says in which turn of
    the Python loops around it it was made, outermost first: "i=3 j=0".
    """

    row: Row
    operands: tuple[Operand, ...]
    attributes: tuple[Any, ...]
    engine: Engine | None
    at: CallChain
    number: int
    name: str = ""
    after: tuple[int, ...] = ()
    pinned: int = 0  # > 0: inside that no_reorder region, keep program order
    iterations: str = ""

    def operand(self, name: str) -> Operand:
        """The operand called `name`."""
        return self.operands[self.row.operand_index[name]]

    def attribute(self, name: str) -> Any:
        """The attribute called `name`."""
        return self.attributes[self.row.attribute_index[name]]

    def facts(self, target: Target) -> Facts:
        """The instruction as the table's functions see it."""
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
    """A device loop. `counter` holds start, start + step, … below stop; `stop` may be a
    register. A `while` loop has `condition`: it runs as long as that register is not zero.
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
        """How often it runs; None where a register decides."""
        return None if self.condition is not None else trips(self.start, self.stop, self.step)


Item = Instruction | Loop
Returned = int | tuple[int | None, ...] | None
Body = tuple[Item, ...]


class TensorParameter(NamedTuple):
    """A tensor that crosses the kernel's boundary, by the name that npz files use."""

    name: str
    tensor: Tensor


@dataclass(frozen=True)
class Program:
    """A specialised kernel.

    `inputs` in signature order; `outputs` in the order of the return, named output_0 …,
    followed by inputs updated in place under their own names. `addresses` is filled by
    allocate, for on-chip tensors by number. `constants` are initial contents by tensor
    number. `messages` are what the kernel printed while it was compiled. `returned` is the form
    of what the kernel returns: the number of an output, or several in a tuple. `reads` are
    hashes of the files of data that became constants, by path.
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
    arguments: Mapping[str, str] = field(default_factory=dict)  # as shown by --info
    notes: Mapping[str, str] = field(default_factory=dict)  # how it was compiled, for --info
    returned: Returned = None
    reads: Mapping[str, str] = field(default_factory=dict)

    def role(self, tensor: Tensor) -> Role:
        """What `tensor` is to the caller."""
        if any(p.tensor is tensor for p in self.inputs):
            return Role.INPUT
        if any(p.tensor is tensor for p in self.outputs):
            return Role.OUTPUT
        return Role.CONSTANT if tensor.number in self.constants else Role.INTERNAL


def instructions(body: Body) -> Iterator[Instruction]:
    """Every instruction of `body`, loop bodies included once, in program order."""
    if Loop not in set(map(type, body)):  # most of the time
        return iter(cast("tuple[Instruction, ...]", body))
    return _inside(body)


def _inside(body: Body) -> Iterator[Instruction]:
    for item in body:
        if isinstance(item, Instruction):
            yield item
        else:
            yield from _inside(item.body)


def paths(program: Program) -> tuple[str, ...]:
    """The source files that the program's places are in, in the order of first use."""
    chains = {id(tensor.at): tensor.at for tensor in program.tensors}
    for body in program.cores:
        chains |= {id(one.at): one.at for one in instructions(body)}
    return tuple(dict.fromkeys(s.path for chain in chains.values() for s in chain.frames()))


def lines(program: Program) -> set[tuple[str, int]]:
    """The source lines (path, number) that the program's places cover."""
    chains = {id(tensor.at): tensor.at for tensor in program.tensors}
    for body in program.cores:
        chains |= {id(one.at): one.at for one in instructions(body)}
    spans = {span for chain in chains.values() for span in chain.frames()}
    return {(s.path, n) for s in spans for n in range(s.line, max(s.line, s.end_line) + 1)}


def tiles(instruction: Instruction) -> Iterator[tuple[str, Tile]]:
    """The tile operands by name."""
    for name, index in instruction.row.operand_index.items():
        operand = instruction.operands[index]
        if isinstance(operand, View | AccessPattern):
            yield name, operand.tile()
