"""Executables that consist only of tensors and accesses to them."""

from collections.abc import Sequence

from nkic.artifact.records import (
    Executable,
    InstructionRecord,
    ParameterRecord,
    PatternRecord,
    StreamRecord,
    TensorRecord,
)
from nkic.machine.dtypes import DTYPES
from nkic.machine.instructions import ROWS
from nkic.machine.targets import Buffer, Engine

HBM = "shared_hbm"


def tensor(
    dtype: str, shape: tuple[int, ...], byte: int = 0, buffer: str = "sbuf", partition: int = 0
) -> TensorRecord:
    kind = Buffer(buffer)
    core = -1 if kind is Buffer.SHARED_HBM else 0
    return TensorRecord(f"t{byte}", DTYPES[dtype], shape, kind, core, "internal", partition, byte)


def access(
    number: int,
    dims: Sequence[tuple[int, int]],
    dtype: str = "float32",
    *,
    start: int = 0,
    partitions: int = 0,
    offset: int = 0,
) -> PatternRecord:
    """Return an access to tensor `number`; in HBM without partitions."""
    return PatternRecord(number, DTYPES[dtype], start, partitions, offset, tuple(dims))


def executable(
    tensors: Sequence[TensorRecord],
    accesses: Sequence[PatternRecord | tuple[PatternRecord, PatternRecord]],
    inputs: Sequence[int] = (),
    outputs: Sequence[int] = (),
) -> Executable:
    """Return an executable. Single accesses are reads; a pair is a write and a read."""
    pairs = [a if len(a) == 2 else (None, a) for a in accesses]
    items = [InstructionRecord(ROWS["tensor_copy"], pair, (), (), (), -1) for pair in pairs]
    return Executable(
        name="t",
        target="trn2",
        cores=1,
        semaphores=0,
        registers=1,
        tensors=tuple(tensors),
        inputs=tuple(ParameterRecord(f"x{n}", n) for n in inputs),
        outputs=tuple(ParameterRecord(f"y{n}", n) for n in outputs),
        streams=(StreamRecord(0, Engine.VECTOR, 0, tuple(items)),),
    )
