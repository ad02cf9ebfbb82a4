"""Random executables over the real instruction table that pass the verifier."""

from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

from nkic.artifact.records import (
    Executable,
    InstructionRecord,
    LoopRecord,
    OperandRecord,
    ParameterRecord,
    PatternRecord,
    StreamRecord,
    TensorRecord,
)
from nkic.machine import operators, rules
from nkic.machine.dtypes import DTYPES
from nkic.machine.instructions import ROWS
from nkic.machine.operands import Attribute, AttributeKind, Operand, Register, Row
from nkic.machine.targets import TARGETS, Buffer, Engine, Target

SIDE = 32  # most tiles are square, so that most shape rules are obeyed
SHAPES = ((SIDE, SIDE),) * 6 + (
    (SIDE, 1),
    (SIDE, 8),
    (1, 1),
    (SIDE, 6),
    (SIDE, 2),
    (1, 16),
    (1, 32),
)
COLUMNS = ((SIDE, 1),) * 4 + ((1, 1),)
SHUFFLE = (*range(1, SIDE), 255)
LIKELY = ("add", "maximum", "multiply", "bypass")
COMMON = ("float32", "bfloat16", "int32")
REGISTERS = 4
TRIES = 2500
BUFFERS = (Buffer.SBUF, Buffer.PSUM, Buffer.HBM, Buffer.SHARED_HBM)


@cache
def tensors() -> tuple[TensorRecord, ...]:
    """Return a tensor of every dtype in every memory; all have the same bytes and may overlap."""
    found = []
    for buffer in BUFFERS:
        for dtype in DTYPES.values():
            core = -1 if buffer is Buffer.SHARED_HBM else 0
            row = (f"{buffer.value}_{dtype.name}", dtype, (SIDE, 2 * SIDE), buffer, core)
            found.append(TensorRecord(*row, "internal", 0, 0))
    return tuple(found)


# Instructions that all cores or ranks run together need several of them: test_cores.py.
ALONE = [name for name, row in ROWS.items() if not row.is_rendezvous]


@cache
def _accepted(
    buffers: frozenset[Buffer], dtypes: frozenset[str]
) -> tuple[list[tuple[int, TensorRecord]], list[tuple[int, TensorRecord]]]:
    """Return the tensors of these kinds with their indices, and those of them in COMMON."""
    allowed = [
        (i, t)
        for i, t in enumerate(tensors())
        if t.buffer in buffers and (not dtypes or t.dtype.name in dtypes)
    ]
    return allowed, [pair for pair in allowed if pair[1].dtype.name in COMMON]


def pattern(rng: Random, operand: Operand) -> PatternRecord:
    """Draw a tile that `operand` accepts."""
    allowed, common = _accepted(operand.buffers, operand.dtypes)
    index, tensor = rng.choice(common if common and rng.random() < 0.8 else allowed)
    partitions, free = rng.choice(COLUMNS if operand.column else SHAPES)
    step = rng.choice((1, 1, 1, 2))
    if tensor.buffer.on_chip:
        offset = rng.randrange(0, 2 * SIDE - step * (free - 1))
        return PatternRecord(index, tensor.dtype, 0, partitions, offset, ((step, free),))
    dims = ((2 * SIDE, partitions), (1, free))
    return PatternRecord(index, tensor.dtype, 0, 0, rng.randrange(SIDE), dims)


def operand_value(rng: Random, operand: Operand, listed: bool = False) -> OperandRecord:
    """Draw any value that `operand` allows; most lists of tiles are short."""
    choices: list[OperandRecord] = []
    if operand.buffers:
        choices += [pattern(rng, operand)] * 2
    if operand.number:
        choices += [rng.choice((0.0, -1.5, 2, float("inf")))]
    if operand.register:
        choices += [Register(rng.randrange(REGISTERS))]
    if operand.optional:
        choices += [None] * (20 if listed else 1)
    return rng.choice(choices)


def attribute_value(rng: Random, attribute: Attribute) -> Any:
    """Draw any value of the attribute's kind, often its default."""
    if attribute.default is not ... and rng.random() < 0.6:
        return attribute.default
    values: dict[AttributeKind, Callable[[], Any]] = {
        AttributeKind.ALU: lambda: rng.choice((*LIKELY * 4, *sorted(operators.ALU))),
        AttributeKind.ACTIVATION: lambda: rng.choice(sorted(operators.ACTIVATIONS)),
        AttributeKind.BOOL: lambda: rng.random() < 0.5,
        AttributeKind.INT: lambda: rng.choice((0, 1, 2, SIDE)),
        AttributeKind.INT32: lambda: rng.choice((0, 1, -1, SIDE, -(2**31))),
        AttributeKind.NUMBER: lambda: rng.choice((0, 1, 0.5, -3.0, float("-inf"))),
        AttributeKind.PATTERN: lambda: rng.choice((((1, SIDE),), ((1, 4), (4, 8)), ((SIDE, 1),))),
        AttributeKind.INTS: lambda: rng.choice(((), (1,), (1,), (1, 0), (SIDE, SIDE), SHUFFLE)),
        AttributeKind.NUMBERS: lambda: rng.choice(((1.0,), (1.0, 1.0), (1, 1.0, 1.0), (0.5,))),
        AttributeKind.CHOICE: lambda: rng.choice(attribute.choices),
        AttributeKind.GROUPS: lambda: rng.choice((((0,),), ((0, 1),))),
        AttributeKind.TEXT: lambda: rng.choice(("x", "a b")),
    }
    return values[attribute.kind]()


@cache
def _roles() -> tuple[int, tuple[TensorRecord, ...]]:
    """Return the tensors of a program, and the index of its input; its output follows."""
    roles = list(tensors())
    first = next(i for i, t in enumerate(roles) if t.buffer is Buffer.SHARED_HBM)
    roles[first] = roles[first]._replace(role="input")
    roles[first + 1] = roles[first + 1]._replace(role="output")
    return first, tuple(roles)


def program(streams: tuple[StreamRecord, ...], target: str = "trn2") -> Executable:
    first, roles = _roles()
    return Executable(
        name="random",
        target=target,
        cores=1,
        semaphores=64,
        registers=REGISTERS,
        tensors=roles,
        inputs=(ParameterRecord("a", first),),
        outputs=(ParameterRecord("output_0", first + 1),),
        streams=streams,
    )


def _legal(item: InstructionRecord, row: Row, engine: Engine, target: Target) -> bool:
    return not rules.violations(row, program(()).facts(item, target, engine))


@cache
def legal_instructions(
    name: str, target: str = "trn2"
) -> tuple[tuple[Engine, InstructionRecord], ...]:
    """Return legal instances of a row with their engines; none for rows not on `target`."""
    row, rng, found = ROWS[name], Random(name), []
    lists = row.spread_operands
    for _ in range(TRIES):
        engine = rng.choice(row.engines)
        item = InstructionRecord(
            row,
            tuple(operand_value(rng, operand, operand in lists) for operand in row.operands),
            tuple(attribute_value(rng, attribute) for attribute in row.attributes),
            (),
            (),
            -1,
        )
        if _legal(item, row, engine, TARGETS[target]):
            found.append((engine, item))
        if len(found) == 8:
            break
    return tuple(found)


def random_program(rng: Random, size: int) -> Executable:
    """Return about `size` legal instructions over all engines, with loops and semaphores."""
    pool = [pair for name in ALONE for pair in legal_instructions(name)]
    items: dict[tuple[Engine, int], list[InstructionRecord | LoopRecord]] = {}
    for _ in range(size):
        engine, item = rng.choice(pool)
        queue = rng.randrange(8) if engine is Engine.DMA else 0
        items.setdefault((engine, queue), []).append(item)
    keys = list(items)
    for semaphore in range(min(8, len(keys))):
        _connect(rng, items[rng.choice(keys)], items[rng.choice(keys)], semaphore)
    streams = tuple(
        StreamRecord(0, engine, queue, tuple(_looped(rng, found)))
        for (engine, queue), found in items.items()
    )
    return program(streams)


def _connect(rng: Random, left: list[Any], right: list[Any], semaphore: int) -> None:
    at = rng.randrange(len(left))
    left[at] = left[at]._replace(signals=(*left[at].signals, semaphore))
    at = rng.randrange(len(right))
    right[at] = right[at]._replace(waits=(*right[at].waits, (semaphore, rng.randrange(1, 9))))


def _looped(
    rng: Random, items: list[InstructionRecord | LoopRecord]
) -> list[InstructionRecord | LoopRecord]:
    """Return the items with a loop around some of them, and an empty slot."""
    start = rng.randrange(len(items))
    length = rng.randrange(1, len(items) - start + 1)
    register = Register(rng.randrange(REGISTERS))
    loop = rng.choice(
        (
            LoopRecord(length, register, 0, rng.randrange(9), rng.randrange(1, 4), None, -1),
            LoopRecord(length, None, 0, 0, 1, register, -1),
            LoopRecord(length, register, register, Register(0), 1, None, -1),
        )
    )
    slot = InstructionRecord(None, (), (), (), (), -1)
    return [*items[:start], loop, *items[start:], slot]
