"""Instructions in their streams, and how long they take there."""

from __future__ import annotations

from typing import NamedTuple

from nkic.ir.program import Instruction, Operand
from nkic.ir.schedule import StreamId
from nkic.ir.tensors import AccessPattern
from nkic.machine.engines import Engine
from nkic.machine.targets import Target
from nkic.machine.timing import Timing, activation_table, timing


class Placed(NamedTuple):
    """An instruction with its stream, in the order of issue over all streams."""

    instruction: Instruction
    stream: StreamId


class Timings:
    """Timings of instructions, computed once per signature."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.known: dict[tuple[object, ...], Timing] = {}

    def of(self, instruction: Instruction, queue: int = 0) -> Timing:
        """The timing of `instruction` on its engine; of a transfer, on that DMA queue."""
        shapes = (_shape(o) for o in instruction.operands)
        by = self.target.queue_engines[queue]
        key = (instruction.row, instruction.attributes, instruction.engine, by, *shapes)
        found = self.known.get(key)
        if found is None:
            facts = instruction.facts(self.target)
            found = self.known[key] = timing(instruction.row, facts, engine_of(instruction), queue)
        return found


def table_of(instruction: Instruction) -> str:
    """The activation table that `instruction` needs, or nothing."""
    return activation_table(instruction.row, instruction.attributes, engine_of(instruction))


def engine_of(instruction: Instruction) -> Engine:
    """The engine that lower chose."""
    return instruction.engine or instruction.row.engines[0]


def _shape(operand: Operand) -> object:
    """All that a cost may depend on: a tile without its place."""
    if type(operand) is AccessPattern:
        return (operand.tensor.buffer, operand.dtype, operand.partitions, operand.dims)
    return operand


def queues_of(instruction: Instruction, target: Target) -> range:
    """The DMA queues that a transfer may take: half of them lead towards the chip."""
    half = max(1, target.dma_queues // 2)
    return range(half, target.dma_queues) if _leaves_chip(instruction) else range(half)


def _leaves_chip(instruction: Instruction) -> bool:
    """A transfer to HBM, or to the debug stream, which has no dst."""
    if "dst" not in instruction.row.operand_index:
        return True
    dst = instruction.operand("dst")
    return isinstance(dst, AccessPattern) and not dst.tensor.on_chip
