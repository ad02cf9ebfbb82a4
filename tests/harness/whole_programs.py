"""Random programs, not yet lowered, of every row that one core runs alone.

A program is a sequence of phases. Each phase has its own tiles, which it fills from the input,
processes, and stores: later phases take over the bytes of earlier ones. Some of its instructions
are in device loops, a few of which are bounded by a register. Registers and the state of engines
pass from phase to phase. With two cores each core has its own program; both reach barriers
together.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from random import Random

from nkic.artifact.records import InstructionRecord, OperandRecord, PatternRecord
from nkic.base.source import NOWHERE, CallChain
from nkic.machine.dtypes import DTYPES
from nkic.machine.instructions import ROWS
from nkic.machine.operands import Register, Row
from nkic.machine.targets import TRN2, Buffer, Engine
from nkic.program.program import (
    Instruction,
    Item,
    Loop,
    Operand,
    Program,
    Tensor,
    TensorParameter,
    View,
)
from tests.harness.random_programs import ALONE, REGISTERS, SIDE, legal_instructions, tensors

AT = CallChain(NOWHERE)
SHAPE = (SIDE, 2 * SIDE)
# Rows that print are left out: runs in different ways need not print in the same order.
LEFT_OUT = {"device_print"}
MOST_PSUM = 5  # tiles per phase, each in a bank of its own


def usable() -> list[str]:
    """Return the names of the rows that programs use."""
    return [name for name in ALONE if name not in LEFT_OUT and legal_instructions(name)]


def random_whole(rng: Random, phases: int, size: int, cores: int = 1) -> Program:
    """Return a program of `phases` on each of `cores`, with about `size` instructions in each
    phase.
    """
    maker = _Maker(rng)
    barrier = maker.tensor("float32", Buffer.SHARED_HBM, (4,)) if cores > 1 else None
    bodies = []
    for _ in range(cores):
        maker.number = 0
        body: list[Item] = [maker.plain("register_move", Engine.SYNC, dst=Register(r), src=r % 3)
                            for r in range(REGISTERS)]  # fmt: skip
        for _ in range(phases):
            body += maker.phase(size)
            if barrier is not None:
                view = View(barrier, (4,), (1,), 0, barrier.dtype)
                body.append(maker.plain("core_barrier", Engine.GPSIMD, data=view))
        bodies.append(tuple(body))
    return Program(
        name="whole",
        target=TRN2,
        tensors=tuple(maker.tensors),
        inputs=tuple(TensorParameter(t.name, t) for t in maker.inputs),
        outputs=tuple(TensorParameter(f"output_{n}", t) for n, t in enumerate(maker.outputs)),
        cores=tuple(bodies),
    )


@dataclass
class _Maker:
    rng: Random
    tensors: list[Tensor] = field(default_factory=list)
    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    number: int = 0
    loops: int = 0

    def tensor(self, dtype: str, buffer: Buffer, shape: tuple[int, ...] = SHAPE) -> Tensor:
        number = len(self.tensors)
        made = Tensor(number, f"t{number}", DTYPES[dtype], shape, buffer, AT)
        self.tensors.append(made)
        return made

    def plain(self, name: str, engine: Engine, **operands: Operand) -> Instruction:
        row = ROWS[name]
        values = tuple(operands.get(o.name, o.default) for o in row.operands)
        given = {"cores": (0, 1)}
        attributes = tuple(given.get(a.name, a.default) for a in row.attributes)
        return self.instruction(row, engine, values, attributes)

    def instruction(
        self,
        row: Row,
        engine: Engine,
        operands: tuple[Operand, ...],
        attributes: tuple[object, ...],
    ) -> Instruction:
        made = Instruction(row, operands, attributes, engine, AT, self.number)
        self.number += 1
        return made

    def phase(self, size: int) -> Iterator[Item]:
        """Return the instructions of a phase: fill tiles, process them, and store them."""
        chosen = self.choose(size)
        used = dict.fromkeys(o.tensor for _, r in chosen for o in r.operands
                             if isinstance(o, PatternRecord))  # fmt: skip
        own = {n: self.tensor(tensors()[n].dtype.name, tensors()[n].buffer) for n in used}
        for tensor in own.values():
            given = self.tensor(tensor.dtype.name, Buffer.SHARED_HBM)
            self.inputs.append(given)
            yield from self.moved(tensor, given)
        yield from self.worked(chosen, own)
        for tensor in own.values():
            kept = self.tensor(tensor.dtype.name, Buffer.SHARED_HBM)
            self.outputs.append(kept)
            yield from self.moved(kept, tensor)

    def moved(self, dst: Tensor, src: Tensor) -> Iterator[Instruction]:
        """Copy bits from tensor to tensor; PSUM is reached only through SBUF."""
        if Buffer.PSUM in (dst.buffer, src.buffer):
            middle = self.tensor(dst.dtype.name, Buffer.SBUF)
            if src.buffer is Buffer.PSUM:
                yield self.plain("tensor_copy", Engine.VECTOR, dst=whole(middle), src=whole(src))
                yield self.plain("dma_copy", Engine.DMA, dst=whole(dst), src=whole(middle))
            else:
                yield self.plain("dma_copy", Engine.DMA, dst=whole(middle), src=whole(src))
                yield self.plain("tensor_copy", Engine.VECTOR, dst=whole(dst), src=whole(middle))
            return
        yield self.plain("dma_copy", Engine.DMA, dst=whole(dst), src=whole(src))

    def choose(self, size: int) -> list[tuple[Engine, InstructionRecord]]:
        """Draw legal instructions, with at most as many tiles in PSUM as fit."""
        chosen, banks = [], set[int]()
        for name in self.rng.choices(usable(), k=size):
            engine, record = self.rng.choice(legal_instructions(name))
            psum = {o.tensor for o in record.operands if isinstance(o, PatternRecord)
                    and tensors()[o.tensor].buffer is Buffer.PSUM}  # fmt: skip
            if len(banks | psum) <= MOST_PSUM:
                banks |= psum
                chosen.append((engine, record))
        return chosen

    def worked(
        self, chosen: list[tuple[Engine, InstructionRecord]], own: dict[int, Tensor]
    ) -> Iterator[Item]:
        """Return the instructions, with loops around some stretches of them."""
        made = [partial(self.converted, engine, record, own) for engine, record in chosen]
        while made:
            count = self.rng.randrange(1, 5)
            stretch, made = made[:count], made[count:]
            if self.rng.random() < 0.3:
                yield from self.loop(stretch)
            else:
                yield from (make() for make in stretch)

    def loop(self, stretch: list[partial[Instruction]]) -> Iterator[Item]:
        """Return a device loop; a register that bounds it is set before it, so that it ends."""
        self.loops += 1
        counter = Register(REGISTERS + self.loops)
        stop: int | Register = self.rng.randrange(4)
        if self.rng.random() < 0.3:
            register = Register(self.rng.randrange(REGISTERS))
            yield self.plain("register_move", Engine.SYNC, dst=register, src=stop)
            stop = register
        number = self.loops
        step, low = self.rng.randrange(1, 3), self.rng.randrange(len(stretch) + 1)
        high = self.rng.randrange(low, len(stretch) + 1)
        inner = self.loop(stretch[low:high]) if low < high and self.rng.random() < 0.4 else None
        body: list[Item] = [make() for make in stretch[:low]]
        body += [make() for make in stretch[low:high]] if inner is None else inner
        body += [make() for make in stretch[high:]]
        yield Loop(number, tuple(body), AT, counter, 0, stop, step)

    def converted(
        self, engine: Engine, record: InstructionRecord, own: dict[int, Tensor]
    ) -> Instruction:
        row = record.row
        assert row is not None
        operands = tuple(_view(o, own) for o in record.operands)
        # lower decides attributes that are left open, but the interpreter of the program does not
        # use lower.
        attributes = tuple(
            self.rng.random() < 0.5 if a.name == "accumulate" and value is None else value
            for a, value in zip(row.attributes, record.attributes, strict=True)
        )
        return self.instruction(row, engine, operands, attributes)


def whole(tensor: Tensor) -> View:
    return View(tensor, tensor.shape, (tensor.shape[1], 1), 0, tensor.dtype)


def _view(operand: OperandRecord, own: dict[int, Tensor]) -> Operand:
    if not isinstance(operand, PatternRecord):
        return operand
    tensor = own[operand.tensor]
    steps, sizes = zip(*operand.dims, strict=True)
    if not tensor.on_chip:
        return View(tensor, sizes, steps, operand.offset, operand.dtype)
    pitch = tensor.bytes // operand.dtype.size
    offset = operand.start * pitch + operand.offset
    return View(tensor, (operand.partitions, *sizes), (pitch, *steps), offset, operand.dtype)
