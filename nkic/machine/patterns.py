"""Access patterns, in programs and in files alike, and pure functions over their (step, num)
pairs, outermost first.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Generic, NamedTuple, TypeVar

from nkic.machine.dtypes import DType
from nkic.machine.memory import Buffer

Dims = tuple[tuple[int, int], ...]

MAX_NUM = 65_535  # the size field of a compute engine's pattern: uint16
MAX_STEP = 32_767  # its step field: int16
UNLIMITED = 1 << 63

TensorT = TypeVar("TensorT")  # how a tensor is named: the tensor itself, or its index in a file
SourceT = TypeVar("SourceT")  # what holds an offset: an operand, or its index


class RunTimeOffset(NamedTuple, Generic[SourceT]):
    """A run-time offset: what `source` holds, times `stride` elements.

    `kind` "scalar": one offset for the whole pattern, in a register or a tile of one element.
    `kind` "vector": `source` holds an index per outermost element (gather, scatter), and the
    pattern's first step is ignored. `kind` "columns": on chip, `source` holds one offset per
    element of a partition, the same for all partitions, as `snake` orders them; the steps are
    ignored. `limit` is the number of valid indices along the indexed dimension `axis` (check of
    bounds).
    """

    kind: str
    source: SourceT
    stride: int
    limit: int
    axis: int = 0

    def notation(self, source: str) -> str:
        """How programs and listings write it; `source` is how they write the source."""
        return f"by {self.kind} {source} stride {self.stride} limit {self.limit} axis {self.axis}"


class Pattern(NamedTuple, Generic[TensorT, SourceT]):
    """What an instruction addresses: a start, and up to a few (step, num) pairs.

    On chip: `start` and `partitions` count from the tensor's first partition, `offset` in
    elements of `dtype` from the tensor's first byte within a partition, `dims` are the free
    dimensions. In HBM: `start` and `partitions` are 0, `dims` has every dimension.
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
        """The kind of its run-time offset, empty if it has none."""
        return self.dynamic.kind if self.dynamic is not None else ""

    @property
    def fixed_dims(self) -> Dims:
        """The dimensions that have no offset of their own for each element."""
        return {"vector": self.dims[1:], "columns": ()}.get(self.kind, self.dims)

    @property
    def elements(self) -> int:
        """All elements, repeated ones counted each time."""
        return max(1, self.partitions) * prod(num for _, num in self.dims)

    def cost_key(self, buffer: Buffer) -> tuple[object, ...]:
        """All of it that costs and the choice of an engine may depend on: everything but its
        place. `buffer` is that of its tensor.
        """
        return buffer, self.dtype.name, self.partitions, self.dims, self.kind

    def notation(self, tensor: int) -> str:
        """How programs and listings write it, without dtype and run-time offset."""
        dims = ", ".join([f"{step}x{num}" for step, num in self.dims])
        start = f"{self.start}+{self.partitions}, " if self.partitions else ""
        return f"%{tensor}[{start}{self.offset}; {dims}]"

    def extent(self) -> tuple[int, int]:
        """Lowest and one past the highest byte touched, from the tensor's first byte (in each
        partition), where run-time offsets are 0.
        """
        low, high = bounds(self.fixed_dims if self.dynamic else self.dims)
        size = self.dtype.size
        return (self.offset + low) * size, (self.offset + high + 1) * size


def merged(dims: Dims, limit: int = UNLIMITED) -> Dims:
    """The fewest pairs, of at most `limit` elements each, that visit the same elements in the
    same order. Compute engines encode at most MAX_NUM, DMA descriptors any number.
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
    """Elements that follow one another without a gap, at the innermost end."""
    inner = merged(dims)
    return inner[-1][1] if inner and inner[-1][0] == 1 else 1


def reach(dims: Dims) -> int:
    """Elements from the lowest to the highest element touched, both counted."""
    return 1 + sum(abs(step) * (num - 1) for step, num in dims)


@lru_cache(maxsize=65536)
def bounds(dims: Dims) -> tuple[int, int]:
    """Lowest and highest element touched, from the first one of the pattern."""
    reaches = [step * (num - 1) for step, num in dims]
    return sum([r for r in reaches if r < 0]), sum([r for r in reaches if r > 0])


@lru_cache(maxsize=65536)
def elements(dims: Dims) -> int:
    """How many elements are visited; 0 where a dimension has none."""
    return prod([max(0, num) for _, num in dims])


def repeats(dims: Dims) -> bool:
    """Whether some element may be visited twice."""
    inside = 0
    for step, num in sorted((abs(step), num) for step, num in dims if num > 1):
        if step <= inside:
            return True
        inside += step * (num - 1)
    return False


def encodable(dims: Dims, pairs: int) -> bool:
    """Whether a compute engine's pattern of at most `pairs` pairs can say `dims` as they are."""
    if len(dims) > pairs:
        return False
    for step, num in dims:
        if num > MAX_NUM or (num > 1 and not -MAX_STEP <= step <= MAX_STEP):
            return False
    return True


def cuts(dims: Dims, count: int) -> tuple[int, ...] | None:
    """Into how many parts to cut each dimension so that the stream of elements falls into
    `count` equal pieces, each a pattern of its own; None if there is no way.
    """
    found = []
    for _, num in dims:
        part = num if count % num == 0 else count
        if num % part:
            return None
        found.append(part)
        count //= part
    return tuple(found) if count == 1 else None
