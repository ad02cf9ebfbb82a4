"""Instructions in their streams, and their timing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nkic.ir.program import Instruction, Operand, cost_key
from nkic.ir.schedule import StreamId
from nkic.ir.tensors import AccessPattern
from nkic.machine.engines import Engine
from nkic.machine.operands import Access
from nkic.machine.targets import Target
from nkic.machine.timing import Timing, activation_table, timing


class Placed(NamedTuple):
    """An instruction with its stream, in the order of issue over all streams."""

    instruction: Instruction
    stream: StreamId


class Alike:
    """The facts that instructions of one signature share.

    These are their engine, timing on queue 0, `length` from start to result, activation table and
    queues, and the operand indices of the tiles that they wait for and write (none for a transfer).
    `is_fixed` tells whether all addresses are known at compile time; `meets`, whether all cores run
    the instruction together.
    """

    __slots__ = (
        *("engine", "first", "is_fixed", "length", "meets", "queues", "reads", "table", "times"),
        "writes",
    )

    def __init__(self, one: Instruction, target: Target) -> None:
        tiles = [type(o) is AccessPattern for o in one.operands]
        facts = one.facts(target)
        self.engine = engine_of(one)
        self.first = timing(one.row, facts, self.engine)
        self.length = self.first.start + self.first.hold + self.first.latency
        self.times = {target.queue_engines[0]: self.first}  # by the triggering engine
        self.table = table_of(one)
        self.is_fixed = not any(_kind(o) for o in one.operands)
        self.meets = one.row.is_rendezvous
        self.queues, modes = range(1), list[Access]()
        if self.engine is Engine.DMA:
            self.queues = queues_of(one, target)
        else:
            modes = [one.row.access_of(operand, facts) for operand in one.row.operands]
        adds = one.row.accumulator
        self.reads = [i for i, m in enumerate(modes) if m.reads and i != adds and tiles[i]]
        self.writes = [i for i, m in enumerate(modes) if m.writes and tiles[i]]


class Timings:
    """Timings, computed once per signature and looked up once per instruction by identity.

    The program must outlive this object.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self.known: dict[tuple[object, ...], Alike] = {}
        self.of_each: dict[int, Alike] = {}  # by identity

    def alike(self, instruction: Instruction) -> Alike:
        """Return the shared facts of `instruction`."""
        found = self.of_each.get(id(instruction))
        if found is None:
            row, operands, attributes, engine = instruction[:4]
            key = (row, attributes, engine, *map(cost_key, operands))
            found = self.known.get(key)
            if found is None:
                found = self.known[key] = Alike(instruction, self.target)
            self.of_each[id(instruction)] = found
        return found

    def of(self, instruction: Instruction, queue: int = 0) -> Timing:
        """Return the timing of `instruction` on its engine or, for a transfer, on DMA queue
        `queue`.
        """
        alike = self.of_each.get(id(instruction)) or self.alike(instruction)
        if not queue:
            return alike.first
        by = self.target.queue_engines[queue]
        found = alike.times.get(by)
        if found is None:
            facts = instruction.facts(self.target)
            found = alike.times[by] = timing(instruction.row, facts, alike.engine, queue)
        return found


def table_of(instruction: Instruction) -> str:
    """Return the activation table that `instruction` needs, or an empty string."""
    return activation_table(instruction.row, instruction.attributes, engine_of(instruction))


def first_users(tables: Mapping[int, str], waits: Mapping[int, Sequence[int]]) -> set[int]:
    """Return the instructions that no user of the same activation table precedes in any order.

    `tables` maps each instruction's number to the table that it needs, in program order.
    """
    bits = {table: 1 << i for i, table in enumerate(sorted({*tables.values()} - {""}))}
    if not bits:
        return set()
    first, after = set[int](), dict[int, int]()  # per instruction: the tables used by then, as bits
    for number, table in tables.items():
        known = 0
        for source in waits[number]:
            known |= after[source]
        own = bits.get(table, 0)
        if own & ~known:
            first.add(number)
        after[number] = known | own
    return first


def tensor_of(operand: Operand) -> int:
    """Return the number of the operand's tensor, or -1 if it has none."""
    return operand.tensor.number if isinstance(operand, AccessPattern) else -1


def engine_of(instruction: Instruction) -> Engine:
    """Return the engine that lower chose."""
    return instruction.engine or instruction.row.engines[0]


def _kind(operand: Operand) -> str:
    """Return the kind of the operand's run-time offset, or an empty string."""
    return operand.kind if type(operand) is AccessPattern else ""


def queues_of(instruction: Instruction, target: Target) -> range:
    """Return the DMA queues that a transfer may take: half of them lead on chip."""
    half = max(1, target.dma_queues // 2)
    return range(half, target.dma_queues) if _leaves_chip(instruction) else range(half)


def _leaves_chip(instruction: Instruction) -> bool:
    """Return whether the transfer goes to HBM or to the debug stream, which has no dst."""
    if "dst" not in instruction.row.operand_index:
        return True
    dst = instruction.operand("dst")
    return isinstance(dst, AccessPattern) and not dst.tensor.on_chip
