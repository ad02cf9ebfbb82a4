"""Stretches of code, their orders of issue, and the timing of instructions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nkic.ir.program import Instruction, Operand, Work, cost_key
from nkic.ir.schedule import StreamId
from nkic.ir.tensors import AccessPattern
from nkic.machine.engines import Engine
from nkic.machine.operands import Access
from nkic.machine.targets import Target
from nkic.machine.timing import Timing, activation_table, timing


class Stretch(NamedTuple):
    """Code without loops, in program order. The lists go by index into `code`.

    `waits` has the indices of the instructions that each one waits for.
    """

    code: Sequence[Instruction]
    classes: list[CostClass]
    waits: list[Sequence[int]]


class Order(NamedTuple):
    """An order of issue of a stretch: indices into its code, and the stream of each by index.

    A stream is a number, its position in `stream_ids`.
    """

    indices: list[int]
    streams: list[int]


FIRST_STREAM = {engine: number for number, engine in enumerate(Engine)}  # DMA has several, the last


def stream_ids(target: Target) -> list[StreamId]:
    """Return all streams of a core, in the order of the file."""
    return [
        StreamId(engine, queue)
        for engine in Engine
        for queue in range(target.dma_queues if engine is Engine.DMA else 1)
    ]


class CostClass:
    """A class of instructions with the same costs, and the facts that they share.

    These are their engine, timing on queue 0, `length` from start to result, activation table and
    queues, also grouped by the engine that triggers them, and the operand indices of the tiles that
    they wait for and write (none for a transfer).
    `is_fixed` tells whether all addresses are known at compile time;
    `is_rendezvous`, whether all cores run the instruction together.
    """

    __slots__ = (
        *("engine", "first", "groups", "is_fixed", "is_rendezvous", "length", "queues", "reads"),
        *("table", "times", "writes"),
    )

    def __init__(self, instruction: Instruction, target: Target) -> None:
        tiles = [type(operand) is AccessPattern for operand in instruction.operands]
        facts = instruction.facts(target)
        self.engine = engine_of(instruction)
        self.first = timing(instruction.row, facts, self.engine)
        self.length = self.first.start + self.first.hold + self.first.latency
        self.times = [self.first]  # by queue
        self.table = table_of(instruction)
        self.is_fixed = not any(_offset_kind(operand) for operand in instruction.operands)
        self.is_rendezvous = instruction.row.is_rendezvous
        self.queues, modes = range(1), list[Access]()
        if self.engine is Engine.DMA:
            self.queues = queues_of(instruction, target)
            by = {
                engine: timing(instruction.row, facts, self.engine, queue)
                for queue, engine in enumerate(target.queue_engines)
            }
            self.times = [by[engine] for engine in target.queue_engines]
        else:
            modes = [
                instruction.row.access_of(operand, facts) for operand in instruction.row.operands
            ]
        self.groups = grouped(self.queues, target)
        adds = instruction.row.accumulator
        self.reads = [i for i, mode in enumerate(modes) if mode.reads and i != adds and tiles[i]]
        self.writes = [i for i, mode in enumerate(modes) if mode.writes and tiles[i]]


class Timings:
    """Timings of instructions, computed once per cost class."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._classes: dict[tuple[object, ...], CostClass] = {}
        self._of_work: dict[tuple[Work, Engine | None], CostClass] = {}

    def cost_class(self, instruction: Instruction) -> CostClass:
        """Return the cost class of `instruction`."""
        work = instruction.work
        if work is None:
            return self._by_content(instruction)
        cached = self._of_work.get((work, instruction.engine))
        if cached is None:
            cached = self._of_work[work, instruction.engine] = self._by_content(instruction)
        return cached

    def _by_content(self, instruction: Instruction) -> CostClass:
        row, operands, attributes, engine = instruction[:4]
        key = (row, attributes, engine, *map(cost_key, operands))
        cached = self._classes.get(key)
        if cached is None:
            cached = self._classes[key] = CostClass(instruction, self.target)
        return cached

    def of(self, instruction: Instruction, queue: int = 0) -> Timing:
        """Return the timing of `instruction` on its engine or, for a transfer, on that queue."""
        return self.cost_class(instruction).times[queue]


def table_of(instruction: Instruction) -> str:
    """Return the activation table that `instruction` needs, or an empty string."""
    return activation_table(instruction.row, instruction.attributes, engine_of(instruction))


def first_users(
    tables: Mapping[int, str], waits: Mapping[int, Sequence[int]] | Sequence[Sequence[int]]
) -> set[int]:
    """Return the instructions that no user of the same activation table precedes in any order.

    `tables` maps each instruction's number, or index, to the table that it needs, in program order.
    """
    bits = {table: 1 << i for i, table in enumerate(sorted({*tables.values()} - {""}))}
    if not bits:
        return set()
    users, used_after = set[int](), dict[int, int]()  # the tables used by then, as bits
    for number, table in tables.items():
        used = 0
        for source in waits[number]:
            used |= used_after[source]
        needed = bits.get(table, 0)
        if needed & ~used:
            users.add(number)
        used_after[number] = used | needed
    return users


def tensor_of(operand: Operand) -> int:
    """Return the number of the operand's tensor, or -1 if it has none."""
    return operand.tensor.number if isinstance(operand, AccessPattern) else -1


def engine_of(instruction: Instruction) -> Engine:
    """Return the engine that lower chose."""
    return instruction.engine or instruction.row.engines[0]


def _offset_kind(operand: Operand) -> str:
    """Return the kind of the operand's run-time offset, or an empty string."""
    return operand.kind if type(operand) is AccessPattern else ""


def queues_of(instruction: Instruction, target: Target) -> range:
    """Return the DMA queues that a transfer may take: half of them lead on chip."""
    half = max(1, target.dma_queues // 2)
    return range(half, target.dma_queues) if _leaves_chip(instruction) else range(half)


def grouped(queues: range, target: Target) -> list[list[int]]:
    """Return `queues` grouped by the engine that triggers their transfers."""
    engines = target.queue_engines
    return [
        [q for q in queues if engines[q] is engine]
        for engine in dict.fromkeys(engines[q] for q in queues)
    ]


def _leaves_chip(instruction: Instruction) -> bool:
    """Return whether the transfer goes to HBM or to the debug stream, which has no dst."""
    if "dst" not in instruction.row.operand_index:
        return True
    dst = instruction.operand("dst")
    return isinstance(dst, AccessPattern) and not dst.tensor.on_chip
