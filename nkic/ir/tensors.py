"""Tensors (storage), views of them, and the access patterns that instructions hold."""

from __future__ import annotations

from enum import Enum
from math import prod
from typing import NamedTuple

from nkic.base.source import CallChain
from nkic.machine.dtypes import DType
from nkic.machine.facts import Register, Tile
from nkic.machine.memory import Address, Buffer
from nkic.machine.patterns import Pattern, RunTimeOffset


class Role(Enum):
    """The role of a tensor for the kernel's caller."""

    INPUT = "input"
    OUTPUT = "output"
    INTERNAL = "internal"
    CONSTANT = "constant"


class Tensor:
    """A piece of storage: declared once, compared by identity, immutable once
    recorded (until the kernel returns, a result may lose and regain its number).

    `shape` starts with the partition dimension if `buffer` is on chip. `fixed` is the address that
    the kernel requested, if any. `scope` is the loop body (a path of loop numbers) that declares
    the tensor, () at top level. The role is known only when the kernel returns, so the Program has
    it.
    """

    __slots__ = (
        *("at", "buffer", "bytes", "dtype", "first", "fixed", "free", "name", "number"),
        *("on_chip", "partitions", "scope", "shape"),
    )

    def __init__(
        self,
        number: int,
        name: str,
        dtype: DType,
        shape: tuple[int, ...],
        buffer: Buffer,
        at: CallChain,
        fixed: Address | None = None,
        scope: tuple[int, ...] = (),
    ) -> None:
        self.number = number
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.buffer = buffer
        self.at = at
        self.fixed = fixed
        self.scope = scope
        self.on_chip = buffer.on_chip
        self.first = fixed.partition if fixed is not None else 0  # for rules; allocate may move it
        self.partitions = shape[0] if self.on_chip else 0  # 0 in HBM
        self.free = prod(shape[1:] if self.on_chip else shape)  # per partition; in HBM, all
        self.bytes = self.free * dtype.size  # per partition; in HBM, all

    def __repr__(self) -> str:
        sizes = ", ".join(map(str, self.shape))
        return f"%{self.number} {self.name}: {self.dtype.name}[{sizes}] {self.buffer.value}"


class View(NamedTuple):
    """A shape over a tensor's storage; strides and offset are in elements of `dtype`.

    On-chip storage is (partition, free) in row-major order: the partition dimension's stride is the
    number of elements per partition, as NKI defines it.
    """

    tensor: Tensor
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: DType
    dynamic: Dynamic | None = None

    @property
    def pitch(self) -> int:
        """Elements of `dtype` per partition of the storage (on chip)."""
        return self.tensor.bytes // self.dtype.size

    def tile(self) -> Tile:
        """Return the view as rules see it."""
        dims = tuple(zip(self.strides, self.shape, strict=True))
        tensor = self.tensor
        if not tensor.on_chip:
            return Tile(tensor.buffer, self.dtype, 0, 0, dims, *addressing(self.dynamic))
        start = tensor.first + (self.offset // self.pitch if self.pitch else 0)
        return Tile(
            tensor.buffer, self.dtype, start, self.shape[0], dims[1:], *addressing(self.dynamic)
        )


class AccessPattern(Pattern[Tensor, "Source"]):
    """The operand of an instruction after lower: an access pattern over a tensor of the program."""

    __slots__ = ()

    def tile(self) -> Tile:
        """Return the pattern as rules and costs see it."""
        return Tile(
            self.tensor.buffer,
            self.dtype,
            self.tensor.first + self.start,
            self.partitions,
            self.dims,
            *addressing(self.dynamic),
        )


Source = View | AccessPattern | Register
Dynamic = RunTimeOffset[Source]


def addressing(dynamic: Dynamic | None) -> tuple[bool, bool, Tile | None]:
    """Return the fields `dynamic`, `indexed` and `offsets` of a tile."""
    if dynamic is None:
        return False, False, None
    source = dynamic.source
    offsets = None if isinstance(source, Register) else source.tile()
    return True, dynamic.kind != "scalar", offsets
