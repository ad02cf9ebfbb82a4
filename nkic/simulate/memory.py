"""The simulated memories, as few NumPy arrays as the program's addresses allow.

SBUF and PSUM are cut into *regions*: sets of tensors connected by shared bytes, each with an
array of its own, so that a tile's rows lie close together on the host while bytes that overlap
on the device overlap here too. A region (or HBM tensor) that every access sees as one narrow
float type is kept *decoded*: as float32 values on that type's grid, rounded when written, which
saves a conversion at every read. All others are raw bytes. Which of the two a region is changes
no bit of any result.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from nkic.machine.codecs import decode, encode, storage
from nkic.machine.dtypes import DTYPES, DType
from nkic.neff.records import Executable, InstructionRecord, PatternRecord, TensorRecord
from nkic.simulate.pages import zeros
from nkic.simulate.scratch import Scratch

PARTITIONS = 128
ALIGN = 8  # bytes: rows begin at multiples, so that every element is aligned on the host
Contents = Mapping[int, NDArray[np.generic]]  # by tensor, in the storage type
GRID_TYPES = frozenset(d for d in DTYPES.values() if d.kind == "float" and d.size <= 2)


@dataclass(frozen=True)
class Region:
    """An array: uint8 (partitions, bytes) if raw, float32 (partitions, elements) if decoded.

    HBM tensors have one row.
    """

    array: NDArray[np.generic]
    grid: DType | None


@dataclass(frozen=True)
class Home:
    """Where a tensor lives: its region, first partition, and first byte within the region."""

    region: Region
    partition: int
    byte: int
    pitch: int  # bytes of the tensor in each partition; in HBM, all
    on_chip: bool


class Memory:
    """All regions of a program, and the scratch arrays that its steps share."""

    def __init__(self, executable: Executable, contents: Contents | None = None) -> None:
        self.executable = executable
        self.contents = contents or {}
        self.patterns = _patterns(executable)
        self.scratch = Scratch()
        self.homes: dict[int, Home] = {}
        self._types = self._types_seen()
        self._written = {p.tensor for p, writes in self.patterns.items() if writes}
        chips: dict[tuple[int, str], list[int]] = defaultdict(list)
        for number, tensor in enumerate(executable.tensors):
            if tensor.buffer.on_chip:
                chips[tensor.core, tensor.buffer.value].append(number)
            else:
                self.homes[number] = self._hbm(number, tensor)
        for numbers in chips.values():
            self._cut(numbers)

    def _types_seen(self) -> dict[int, set[DType]]:
        """The element types under which each tensor is accessed, by anyone."""
        seen: dict[int, set[DType]] = defaultdict(set)
        for pattern in self.patterns:
            seen[pattern.tensor].add(pattern.dtype)
        crossing = (*self.executable.inputs, *self.executable.outputs)
        for number in (*self.contents, *(p.tensor for p in crossing)):
            seen[number].add(self.executable.tensors[number].dtype)
        return seen

    def _hbm(self, number: int, tensor: TensorRecord) -> Home:
        """An HBM tensor's region, filled; what nobody writes is the caller's array itself."""
        grid = self._grid([number])
        size = prod(tensor.shape) * tensor.dtype.size
        given = self.contents.get(number)
        if given is not None and grid is None and number not in self._written:
            return Home(Region(_read_only(given), None), 0, 0, size, False)
        region = _region(1, size, grid)
        if given is not None:
            _fill(region, given)
        return Home(region, 0, 0, size, False)

    def _grid(self, numbers: Iterable[int]) -> DType | None:
        """The one narrow float type that all accesses to these tensors use, if so."""
        tensors = self.executable.tensors
        types = {d for n in numbers for d in self._types.get(n, {tensors[n].dtype})}
        only = types.pop() if len(types) == 1 else None
        return only if only in GRID_TYPES else None

    def _cut(self, numbers: list[int]) -> None:
        """Regions of one memory of one core: runs of tensors whose bytes touch."""
        tensors = self.executable.tensors
        group: list[int] = []
        end = -1
        for number in sorted(numbers, key=lambda n: (tensors[n].byte, n)):
            low = tensors[number].byte
            if group and low >= end:
                self._settle(group, end)
                group = []
            end = max(end if group else 0, low + _pitch(tensors[number]))
            group.append(number)
        if group:
            self._settle(group, end)

    def _settle(self, numbers: list[int], end: int) -> None:
        tensors = self.executable.tensors
        low = min(tensors[n].byte for n in numbers) // ALIGN * ALIGN
        rows = max(tensors[n].partition + tensors[n].shape[0] for n in numbers)
        region = _region(rows, -(-(end - low) // ALIGN) * ALIGN, self._grid(numbers))
        for n in numbers:
            tensor = tensors[n]
            self.homes[n] = Home(region, tensor.partition, tensor.byte - low, _pitch(tensor), True)

    def window(self, pattern: PatternRecord) -> NDArray[np.generic]:
        """The elements of an access, (partitions, *dims), HBM (1, *dims): float32 in a decoded
        region, else of the storage type."""
        home = self.homes[pattern.tensor]
        array, grid = home.region.array, home.region.grid
        if grid is None:
            kind, unit, first = storage(pattern.dtype), pattern.dtype.size, home.byte
        else:
            kind, unit, first = _FLOAT32, 4, home.byte // grid.size * 4
        shape, strides = [1], [0]
        first += pattern.offset * unit
        if home.on_chip:
            shape, strides = [pattern.partitions], [array.strides[0]]
            first += (home.partition + pattern.start) * array.strides[0]
        for step, num in pattern.dims or ((1, 1),):
            shape.append(num)
            strides.append(step * unit)
        return np.ndarray(shape, kind, array, first, strides)

    def contents_of(self, number: int, rounded: bool) -> NDArray[np.generic]:
        """A whole HBM tensor in its storage type; `rounded`: its values are on their grid."""
        tensor, region = self.executable.tensors[number], self.homes[number].region
        if region.grid is not None:
            row = np.asarray(region.array[0], np.float32)
            return encode(row, region.grid, on_grid=rounded).reshape(tensor.shape)
        found: NDArray[np.generic] = region.array[0].view(storage(tensor.dtype))
        return found.reshape(tensor.shape)


_FLOAT32 = np.dtype(np.float32)


def _patterns(executable: Executable) -> dict[PatternRecord, bool]:
    """Every access pattern of the program, and whether some instruction may write it."""
    found: dict[PatternRecord, bool] = {}
    for item in instructions(executable):
        if item.row is None:
            continue
        rules = item.row.operands
        for index, operand in enumerate(item.operands):
            if type(operand) is PatternRecord:
                writes = index < len(rules) and rules[index].access.writes
                found[operand] = writes or found.get(operand, False)
    return found


def instructions(executable: Executable) -> Iterator[InstructionRecord]:
    """Every instruction of every stream."""
    for stream in executable.streams:
        for item in stream.items:
            if isinstance(item, InstructionRecord):
                yield item


def _pitch(tensor: TensorRecord) -> int:
    return max(1, prod(tensor.shape[1:]) * tensor.dtype.size)


def _region(rows: int, size: int, grid: DType | None) -> Region:
    if grid is not None:
        return Region(zeros(rows, -(-size // grid.size), np.float32), grid)
    return Region(zeros(rows, size, np.uint8), None)


def _read_only(values: NDArray[np.generic]) -> NDArray[np.generic]:
    row = np.ascontiguousarray(values).reshape(1, -1).view(np.uint8)
    row.flags.writeable = False
    return row


def _fill(region: Region, values: NDArray[np.generic]) -> None:
    flat = np.ascontiguousarray(values).reshape(-1)
    if region.grid is not None:
        decode(flat, region.grid, region.array[0])
    else:
        region.array[0] = flat.view(np.uint8)
