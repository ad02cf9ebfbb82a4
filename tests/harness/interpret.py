"""Interpret a recorded program instruction by instruction.

Nothing is lowered, allocated, ordered or synchronised. The semantics of instructions are the
runner's; everything else is implemented separately.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.artifact.records import (
    Executable,
    InstructionRecord,
    OperandRecord,
    PatternRecord,
    StreamRecord,
    TensorRecord,
)
from nkic.machine.operands import Register
from nkic.machine.targets import Buffer, Engine
from nkic.program.program import Body, Instruction, Loop, Operand, Program, View, instructions
from nkic.simulate.memory import Memory
from nkic.simulate.numerics import quiet
from nkic.simulate.outcome import Prints
from nkic.simulate.plans import Decoder
from nkic.simulate.streams import Item, Runner, prepare

Arrays = Mapping[str, NDArray[Any]]
PITCH = 256  # bytes of each tensor's separate area in every partition


def interpret(program: Program, inputs: Arrays) -> dict[str, bytes]:
    """Return the bytes of every output. Cores run one after the other, since they share no data."""
    executable = _executable(program)
    places = {t.number: n for n, t in enumerate(program.tensors)}
    contents: dict[int, NDArray[Any]] = {
        places[p.tensor.number]: inputs[p.name] for p in program.inputs
    }
    with quiet():
        memory = Memory(executable, contents)
        decoder = Decoder(memory, program.target, True)
        runners = prepare(decoder, None, Prints())
        for core, body in enumerate(program.cores):
            _Core([r for r in runners if r.core == core], body).run(body)
    outputs = {p.name: places[p.tensor.number] for p in program.outputs}
    return {name: memory.contents_of(n, True).tobytes() for name, n in outputs.items()}


class _Core:
    """The instructions of one core as the runner's steps."""

    def __init__(self, runners: list[Runner], body: Body) -> None:
        self.steps: dict[int, Item] = {}
        self.registers: Any = runners[0].state.registers.shared if runners else []
        waiting = {runner.record.engine: iter(runner.items) for runner in runners}
        for one in instructions(body):
            item = next(waiting[engine_of(one)])
            assert isinstance(item, Item)
            self.steps[one.number] = item

    def run(self, body: Body) -> None:
        for item in body:
            if isinstance(item, Loop):
                for _ in range(self.value(item.start), self.value(item.stop), item.step):
                    self.run(item.body)
                continue
            step = self.steps[item.number]
            for tile, window in step.windows:
                tile.window = window
            if step.step is not None and not step.is_rendezvous:
                step.step()

    def value(self, bound: int | Register) -> int:
        return self.registers[bound.number] if isinstance(bound, Register) else bound


def engine_of(one: Instruction) -> Engine:
    return one.engine or one.row.engines[0]


def _executable(program: Program) -> Executable:
    """Return an executable in which each tensor has its own address, and each engine one stream."""
    places = {t.number: n for n, t in enumerate(program.tensors)}
    streams = []
    for core, body in enumerate(program.cores):
        by_engine: dict[Engine, list[InstructionRecord]] = {}
        for one in instructions(body):
            operands = tuple(_operand(o, places) for o in one.operands)
            record = InstructionRecord(one.row, operands, one.attributes, (), (), -1)
            by_engine.setdefault(engine_of(one), []).append(record)
        streams += [StreamRecord(core, e, 0, tuple(items)) for e, items in by_engine.items()]
    owners = _owners(program)
    tensors = []
    used = {Buffer.SBUF: 0, Buffer.PSUM: 0}
    for tensor in program.tensors:
        byte = 0
        if tensor.on_chip:
            byte = used[tensor.buffer]
            used[tensor.buffer] += PITCH * max(1, -(-tensor.bytes // PITCH))
        row = (tensor.name, tensor.dtype, tensor.shape, tensor.buffer)
        core = -1 if tensor.buffer is Buffer.SHARED_HBM else owners.get(tensor.number, 0)
        tensors.append(TensorRecord(*row, core, "internal", 0, byte))
    registers = 1 + max(
        (o.number for b in program.cores for i in instructions(b) for o in i.operands
         if isinstance(o, Register)), default=0
    )  # fmt: skip
    return Executable(
        "whole", program.target.name, len(program.cores), 0, registers, tuple(tensors), (), (),
        tuple(streams),
    )  # fmt: skip


def _owners(program: Program) -> dict[int, int]:
    return {
        o.tensor.number: core
        for core, body in enumerate(program.cores)
        for one in instructions(body)
        for o in one.operands
        if isinstance(o, View)
    }


def _operand(operand: Operand, places: Mapping[int, int]) -> OperandRecord:
    """Return a view unchanged, without merging dimensions."""
    if not isinstance(operand, View):
        return operand  # type: ignore[return-value]
    tensor, place = operand.tensor, places[operand.tensor.number]
    dims = tuple(zip(operand.strides, operand.shape, strict=True))
    if not tensor.on_chip:
        return PatternRecord(place, operand.dtype, 0, 0, operand.offset, dims)
    start, offset = divmod(operand.offset, operand.pitch)
    return PatternRecord(place, operand.dtype, start, operand.shape[0], offset, dims[1:])


def random_inputs(program: Program, seed: int) -> dict[str, NDArray[Any]]:
    """Return random bits for every input, in storage types."""
    from nkic.machine.codecs import storage

    rng = np.random.default_rng(seed)
    found: dict[str, NDArray[Any]] = {}
    for parameter in program.inputs:
        tensor = parameter.tensor
        size = tensor.bytes
        raw = rng.integers(0, 64, size, np.uint8)  # no NaN, no large numbers
        found[parameter.name] = raw.view(storage(tensor.dtype)).reshape(tensor.shape)
    return found
