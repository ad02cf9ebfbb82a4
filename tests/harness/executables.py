"""Small executables over a separate instruction table, for tests of the file format."""

from hashlib import sha256
from typing import Any

from nkic.artifact.records import (
    Executable,
    FileRecord,
    InstructionRecord,
    LoopRecord,
    OffsetRecord,
    ParameterRecord,
    PatternRecord,
    PlaceRecord,
    StreamRecord,
    TensorRecord,
)
from nkic.machine import dtypes
from nkic.machine.dtypes import DType
from nkic.machine.operands import (
    SBUF_OR_HBM,
    Access,
    Attribute,
    AttributeKind,
    Cost,
    Facts,
    Operand,
    Register,
    Row,
    Violation,
)
from nkic.machine.targets import Buffer, Engine

SOURCE = "def add(a):\n    return a + a\n"


def _same_elements(facts: Facts) -> Violation | None:
    dst, data = facts.tile("dst"), facts.maybe("data")
    if data is None or data.elements == dst.elements:
        return None
    return Violation("operand-shape", f"`data` has {data.elements} elements, not {dst.elements}")


def row(name: str, opcode: int, engines: tuple[Engine, ...], **more: Any) -> Row:
    """Return a row with `dst` and `data`, and the fields in `more`."""
    plain: dict[str, Any] = {
        "doc": "",
        "parameters": (),
        "operands": (Operand("dst", Access.WRITE), Operand("data", Access.READ)),
        "cost": lambda facts: Cost(64),
        "rules": (_same_elements,),
    }
    return Row(name=name, opcode=opcode, engines=engines, **(plain | more))


COPY = row(
    "copy",
    1,
    (Engine.DMA,),
    operands=(
        Operand("dst", Access.WRITE, buffers=SBUF_OR_HBM, indexed=True),
        Operand("data", Access.READ, buffers=SBUF_OR_HBM, indexed=True),
    ),
)
SCALE = row(
    "scale",
    2,
    (Engine.VECTOR, Engine.SCALAR),
    operands=(
        Operand("dst", Access.WRITE),
        Operand("data", Access.READ),
        Operand("factor", Access.READ, number=True, optional=True, column=True),
    ),
    attributes=(
        Attribute("op", AttributeKind.ALU),
        Attribute("reverse", AttributeKind.BOOL, default=False),
        Attribute("bias", AttributeKind.NUMBER, default=0.0),
        Attribute("steps", AttributeKind.PATTERN, default=()),
        Attribute(
            "mode", AttributeKind.CHOICE, choices=("fast", "exact"), default=None, optional=True
        ),
    ),
)
COUNT = row(
    "count",
    3,
    (Engine.VECTOR, Engine.DMA),
    operands=(Operand("dst", Access.READ, buffers=frozenset(), register=True),),
    attributes=(Attribute("value", AttributeKind.INT32),),
    rules=(),
)
NEW = row("new", 4, (Engine.VECTOR,), generation=4)
ROWS = {r.opcode: r for r in (COPY, SCALE, COUNT, NEW)}

F32, BF16, I32 = dtypes.DTYPES["float32"], dtypes.DTYPES["bfloat16"], dtypes.DTYPES["int32"]


def hbm(name: str, role: str, shape: tuple[int, ...], dtype: DType = F32) -> TensorRecord:
    """Return a tensor in HBM that all cores share."""
    return TensorRecord(name, dtype, shape, Buffer.SHARED_HBM, -1, role, 0, 0, 0)


def sbuf(
    name: str, shape: tuple[int, ...], byte: int, dtype: DType = F32, core: int = 0
) -> TensorRecord:
    """Return a tensor in SBUF, from partition 0."""
    return TensorRecord(name, dtype, shape, Buffer.SBUF, core, "internal", 0, byte, 1)


def whole(index: int, tensor: TensorRecord) -> PatternRecord:
    dims: list[tuple[int, int]] = []
    step = 1
    for num in reversed(tensor.shape[1:] if tensor.buffer.on_chip else tensor.shape):
        dims.insert(0, (step, num))
        step *= num
    partitions = tensor.shape[0] if tensor.buffer.on_chip else 0
    return PatternRecord(index, tensor.dtype, 0, partitions, 0, tuple(dims))


TENSORS = (
    hbm("a", "input", (128, 16)),
    hbm("out", "output", (128, 16)),
    hbm("table", "constant", (4,), I32),
    sbuf("a_tile", (128, 16), 0),
    sbuf("out_tile", (128, 16), 64),
    sbuf("index", (1, 1), 128, I32),
)
A, OUT, TABLE, A_TILE, OUT_TILE, INDEX = (whole(i, t) for i, t in enumerate(TENSORS))
LOAD = InstructionRecord(COPY, (A_TILE, A), (), (), (0,), 1)
LOAD_INDEX = InstructionRecord(COPY, (INDEX, TABLE._replace(dims=((1, 1),))), (), (), (), 1)
SCALED = InstructionRecord(
    SCALE,
    (OUT_TILE, A_TILE, 2.5),
    ("multiply", False, 1, ((1, 2), (-3, 4)), "fast"),
    ((0, 1),),
    (),
    2,
)
LOOP = LoopRecord(2, Register(0), 0, 4, 1, None, 2)
BODY = InstructionRecord(
    SCALE,
    (
        OUT_TILE._replace(dims=((1, 4),), dynamic=OffsetRecord("scalar", 3, 4, 4, 0)),
        A_TILE._replace(dims=((1, 4),)),
        None,
        Register(0),
    ),
    ("add", True, 0.0, (), None),
    (),
    (),
    2,
)
DONE = InstructionRecord(None, (), (), (), (1,), -1)
STORE = InstructionRecord(COPY, (OUT, OUT_TILE), (), ((1, 4),), (), 3)
SET = InstructionRecord(COUNT, (Register(1),), (-7,), (), (), 1)
WHILE = LoopRecord(1, None, 0, 0, 1, Register(1), 1)
PLACES = (
    PlaceRecord(0, 1, 1, 1, 12, -1),
    PlaceRecord(0, 2, 5, 2, 11, 0),
    PlaceRecord(0, 2, 12, 2, 17, 0),
    PlaceRecord(0, 2, 5, 2, 17, 1),
)


def sample() -> Executable:
    """Return an executable with every feature: loops, dynamic offsets, a constant, waits,
    places.
    """
    return Executable(
        name="add",
        target="trn2",
        cores=1,
        semaphores=2,
        registers=2,
        tensors=TENSORS,
        inputs=(ParameterRecord("a", 0),),
        outputs=(ParameterRecord("output_0", 1),),
        streams=(
            StreamRecord(0, Engine.DMA, 0, (LOAD, LOAD_INDEX, STORE)),
            StreamRecord(0, Engine.VECTOR, 0, (SCALED, LOOP, BODY, DONE)),
            StreamRecord(0, Engine.DMA, 3, (SET, WHILE, SET)),
        ),
        constants={2: bytes(range(16))},
        places=PLACES,
        files=(FileRecord("kernels/add.py", sha256(SOURCE.encode()).hexdigest(), SOURCE),),
        arguments={"a": "float32[128, 16]"},
        meta={"producer": "nkic 0.1.0", "serial": "no"},
    )


def instruction_of(item: InstructionRecord | LoopRecord) -> InstructionRecord:
    """Return the item of a stream, which must be an instruction."""
    assert isinstance(item, InstructionRecord)
    return item


def long_sample(count: int) -> Executable:
    """Return `count` instructions in two streams, with new pattern objects as emit creates them."""
    tensors = (
        hbm("a", "input", (128, 1 << 14)),
        hbm("out", "output", (128, 1 << 14)),
        *(sbuf(f"tile{i}", (128, 512), 2048 * i) for i in range(16)),
    )
    loads = tuple(_load(i) for i in range(count // 2))
    scales = tuple(_scale(i) for i in range(count // 2))
    return Executable(
        name="long",
        target="trn2",
        cores=1,
        semaphores=2,
        registers=0,
        tensors=tensors,
        inputs=(ParameterRecord("a", 0),),
        outputs=(ParameterRecord("output_0", 1),),
        streams=(
            StreamRecord(0, Engine.DMA, 0, loads),
            StreamRecord(0, Engine.VECTOR, 0, scales),
        ),
        places=tuple(PlaceRecord(0, i + 1, 1, i + 1, 9, -1) for i in range(100)),
        files=(FileRecord("long.py", sha256(b"").hexdigest()),),
    )


def _load(i: int) -> InstructionRecord:
    source = PatternRecord(0, F32, 0, 0, 512 * (i % 3900) + i // 3900, ((1, 128 * 512),))
    dst = PatternRecord(2 + i % 16, F32, 0, 128, 0, ((1, 512),))
    return InstructionRecord(COPY, (dst, source), (), ((1, 1),) if i else (), (0,), i % 100)


def _scale(i: int) -> InstructionRecord:
    tile = PatternRecord(2 + i % 16, F32, 0, 128, 0, ((1, 512),))
    attributes = ("multiply", False, float(i % 7), (), None)
    return InstructionRecord(SCALE, (tile, tile, 2.0), attributes, ((0, 1),), (1,), i % 100)
