"""The simulated memories, as few NumPy arrays as the program's addresses allow.

SBUF and PSUM are cut into *regions*: sets of tensors connected by shared bytes, each with an
array of its own, so that a tile's rows lie close together on the host while bytes that overlap
on the device overlap here too. A region (or HBM tensor) that every access sees as one narrow
float type is kept *decoded*: as float32 values on that type's grid, rounded when written, which
saves a conversion at every read. All others are raw bytes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from nkic.machine.codecs import decode
from nkic.machine.dtypes import DTYPES, DType
from nkic.neff.records import Executable, InstructionRecord, PatternRecord, TensorRecord
from nkic.simulate.pages import zeros

PARTITIONS = 128
Contents = Mapping[int, NDArray[np.generic]]  # by tensor, in the storage type
GRID_TYPES = frozenset(d for d in DTYPES.values() if d.kind == "float" and d.size <= 2)


@dataclass(frozen=True)
class Region:
    """An array: uint8 (partitions, bytes) if raw, float32 (partitions, elements) if decoded.

    HBM tensors have one row. `byte` is the device address of the first column.
    """

    array: NDArray[np.generic]
    grid: DType | None
    byte: int


@dataclass(frozen=True)
class Home:
    """Where a tensor lives: its region, first partition, and first byte within the region."""

    region: Region
    partition: int
    byte: int
    pitch: int  # bytes of the tensor in each partition; in HBM, all


class Memory:
    """All regions of a program."""

    def __init__(self, executable: Executable, contents: Contents | None = None) -> None:
        self.executable = executable
        self.contents = contents or {}
        self.seen = _types_seen(executable)
        self.written = _written(executable)
        self.homes: dict[int, Home] = {}
        chips: dict[tuple[int, str], list[int]] = defaultdict(list)
        for number, tensor in enumerate(executable.tensors):
            if tensor.buffer.on_chip:
                chips[tensor.core, tensor.buffer.value].append(number)
            else:
                self.homes[number] = self._hbm(number, tensor)
        for numbers in chips.values():
            self._cut(numbers)

    def _hbm(self, number: int, tensor: TensorRecord) -> Home:
        """An HBM tensor's region, filled; what nobody writes is the caller's array itself."""
        grid = self._grid([number])
        size = prod(tensor.shape) * tensor.dtype.size
        given = self.contents.get(number)
        if given is not None and grid is None and number not in self.written:
            return Home(Region(_read_only(given), None, 0), 0, 0, size)
        region = _region(1, size, grid, 0)
        if given is not None:
            _fill(region, given)
        return Home(region, 0, 0, size)

    def _grid(self, numbers: Iterable[int]) -> DType | None:
        """The one narrow float type that all accesses to these tensors use, if so."""
        tensors = self.executable.tensors
        types = {d for n in numbers for d in self.seen.get(n, {tensors[n].dtype})}
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
        low = min(tensors[n].byte for n in numbers)
        grid = self._grid(numbers)
        if grid is not None and any((tensors[n].byte - low) % grid.size for n in numbers):
            grid = None
        rows = max(tensors[n].partition + tensors[n].shape[0] for n in numbers)
        region = _region(rows, end - low, grid, low)
        for n in numbers:
            tensor = tensors[n]
            self.homes[n] = Home(region, tensor.partition, tensor.byte - low, _pitch(tensor))

    def view(
        self,
        pattern: PatternRecord,
        shape: tuple[int, ...],
        steps: tuple[int, ...],
        dtype: np.dtype[np.generic],
    ) -> NDArray[np.generic]:
        """A strided window: `shape` and `steps` (elements) of the free dimensions. `dtype` is
        float32 in a decoded region, else the storage type."""
        home = self.homes[pattern.tensor]
        array = home.region.array
        width = 4 if home.region.grid is not None else 1
        unit = width if home.region.grid is not None else pattern.dtype.size
        scale = home.region.grid.size if home.region.grid is not None else 1
        first = home.byte // scale * width + pattern.offset * unit
        strides = tuple(step * unit for step in steps)
        if not self.executable.tensors[pattern.tensor].buffer.on_chip:
            return np.ndarray(shape, dtype, array, first, strides)
        row = array.strides[0]
        first += (home.partition + pattern.start) * row
        return np.ndarray((pattern.partitions, *shape), dtype, array, first, (row, *strides))


def _pitch(tensor: TensorRecord) -> int:
    return max(1, prod(tensor.shape[1:]) * tensor.dtype.size)


def _region(rows: int, size: int, grid: DType | None, byte: int) -> Region:
    if grid is not None:
        columns = -(-size // grid.size)
        return Region(zeros(rows, columns, np.float32), grid, byte)
    return Region(zeros(rows, size, np.uint8), None, byte)


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


def _written(executable: Executable) -> set[int]:
    """The tensors that some instruction may write."""
    found = set()
    for stream in executable.streams:
        for item in stream.items:
            if isinstance(item, InstructionRecord) and item.row is not None:
                for rule, operand in zip(item.row.operands, item.operands, strict=False):
                    if type(operand) is PatternRecord and rule.access.writes:
                        found.add(operand.tensor)
    return found


def _types_seen(executable: Executable) -> dict[int, set[DType]]:
    """The element types under which instructions see each tensor."""
    seen: dict[int, set[DType]] = defaultdict(set)
    for stream in executable.streams:
        for item in stream.items:
            if isinstance(item, InstructionRecord):
                for operand in item.operands:
                    if type(operand) is PatternRecord:
                        seen[operand.tensor].add(operand.dtype)
    for parameter in (*executable.inputs, *executable.outputs):
        seen[parameter.tensor].add(executable.tensors[parameter.tensor].dtype)
    return seen
