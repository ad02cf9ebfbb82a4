"""Access patterns of programs and files, and pure functions over their (step, num) pairs.

Pairs are listed outermost first.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Generic, NamedTuple, TypeVar

from nkic.machine.dtypes import DType
from nkic.machine.targets import Buffer

Dims = tuple[tuple[int, int], ...]

MAX_NUM = 65_535  # limit of a compute engine's size field: uint16
MAX_STEP = 32_767  # limit of its step field: int16
UNLIMITED = 1 << 63
DYNAMIC_KINDS = ("scalar", "vector", "columns")  # in the order of their numbers in files

TensorT = TypeVar("TensorT")  # a tensor reference: the tensor itself, or its index in a file
SourceT = TypeVar("SourceT")  # the holder of an offset: an operand, or its index


class RunTimeOffset(NamedTuple, Generic[SourceT]):
    """A run-time offset: the value of `source`, times `stride` elements.

    `kind` "scalar": one offset for the whole pattern, in a register or a tile of one element.
    `kind` "vector": `source` holds an index per outermost element (gather, scatter), and the
    pattern's first step is ignored. `kind` "columns": on chip, `source` holds one offset per
    element of a partition, shared by all partitions; the steps are ignored.
    `limit` is the number of valid indices along the indexed dimension `axis` (for bounds checks).
    """

    kind: str
    source: SourceT
    stride: int
    limit: int
    axis: int = 0

    def notation(self, source: str) -> str:
        """Return the form used in programs and listings; `source` is the source's own form."""
        return f"by {self.kind} {source} stride {self.stride} limit {self.limit} axis {self.axis}"


class Pattern(NamedTuple, Generic[TensorT, SourceT]):
    """An access pattern: a start and up to a few (step, num) pairs.

    On chip, `start` and `partitions` count from the tensor's first partition, `offset` counts
    elements of `dtype` from the tensor's first byte within a partition, and `dims` are the free
    dimensions. In HBM, `start` and `partitions` are 0 and `dims` has every dimension.
    """

    tensor: TensorT
    dtype: DType
    start: int
    partitions: int
    offset: int
    dims: Dims
    dynamic: RunTimeOffset[SourceT] | None = None

    @property
    def kind(self) -> str:
        """The kind of the run-time offset; empty if there is none."""
        return self.dynamic.kind if self.dynamic is not None else ""

    @property
    def fixed_dims(self) -> Dims:
        """The dimensions whose elements have no run-time offset of their own."""
        return {"vector": self.dims[1:], "columns": ()}.get(self.kind, self.dims)

    @property
    def elements(self) -> int:
        """The number of elements visited, counting repeats."""
        return max(1, self.partitions) * prod(num for _, num in self.dims)

    def cost_key(self, buffer: Buffer) -> tuple[object, ...]:
        """Return everything that costs and engine choice may depend on: all but the address.

        `buffer` is the buffer of the pattern's tensor.
        """
        _, dtype, _, partitions, _, dims, dynamic = self
        return buffer, dtype.name, partitions, dims, dynamic.kind if dynamic is not None else ""

    def notation(self, tensor: int) -> str:
        """Return the form used in programs and listings, without dtype and run-time offset."""
        dims = ", ".join([f"{step}x{num}" for step, num in self.dims])
        start = f"{self.start}+{self.partitions}, " if self.partitions else ""
        return f"%{tensor}[{start}{self.offset}; {dims}]"

    def extent(self) -> tuple[int, int]:
        """Return the lowest and one past the highest byte touched, with run-time offsets of 0.

        Bytes count from the tensor's first byte (in each partition).
        """
        low, high = bounds(self.fixed_dims if self.dynamic else self.dims)
        size = self.dtype.size
        return (self.offset + low) * size, (self.offset + high + 1) * size


def merged(dims: Dims, limit: int = UNLIMITED) -> Dims:
    """Return the fewest pairs, of at most `limit` elements each, that visit the same sequence.

    Compute engines encode at most MAX_NUM elements per pair, DMA descriptors any number.
    """
    out: list[tuple[int, int]] = []
    for step, num in dims:
        if num == 1:
            continue
        if out and out[-1][0] == step * num and out[-1][1] * num <= limit:
            out[-1] = (step, out[-1][1] * num)
        else:
            out.append((step, num))
    return tuple(out)


def run(dims: Dims) -> int:
    """Return the number of contiguous elements in the innermost run."""
    inner = merged(dims)
    return inner[-1][1] if inner and inner[-1][0] == 1 else 1


def reach(dims: Dims) -> int:
    """Return the number of elements from the lowest to the highest one touched, inclusive."""
    return 1 + sum(abs(step) * (num - 1) for step, num in dims)


@lru_cache(maxsize=65536)
def bounds(dims: Dims) -> tuple[int, int]:
    """Return the lowest and highest element touched, relative to the pattern's first element."""
    reaches = [step * (num - 1) for step, num in dims]
    return sum([r for r in reaches if r < 0]), sum([r for r in reaches if r > 0])


@lru_cache(maxsize=65536)
def elements(dims: Dims) -> int:
    """Return the number of elements visited; 0 if a dimension is empty."""
    return prod([max(0, num) for _, num in dims])


def repeats(dims: Dims) -> bool:
    """Return whether any element may be visited twice."""
    inside = 0
    for step, num in sorted((abs(step), num) for step, num in dims if num > 1):
        if step <= inside:
            return True
        inside += step * (num - 1)
    return False


def encodable(dims: Dims, pairs: int) -> bool:
    """Return whether a compute engine's pattern of at most `pairs` pairs can encode `dims`
    unchanged.
    """
    if len(dims) > pairs:
        return False
    for step, num in dims:
        if num > MAX_NUM or (num > 1 and not -MAX_STEP <= step <= MAX_STEP):
            return False
    return True


def cuts(dims: Dims, count: int) -> tuple[int, ...] | None:
    """Return the number of parts to cut each dimension into, for `count` equal consecutive pieces.

    Each piece is a pattern of its own. None if that is impossible.
    """
    counts = []
    for _, num in dims:
        pieces = num if count % num == 0 else count
        if num % pieces:
            return None
        counts.append(pieces)
        count //= pieces
    return tuple(counts) if count == 1 else None
