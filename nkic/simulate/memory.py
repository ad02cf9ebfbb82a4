"""The simulated memories, as few NumPy arrays as the program's addresses allow.

SBUF and PSUM are cut into *regions*: sets of tensors connected by shared bytes, each with its own
array, so that a tile's rows are close together on the host while bytes that overlap on the device
overlap here too. A region (or HBM tensor) that all accesses use as one narrow float type is kept
*decoded*: as float32 values on that type's grid, rounded when written, which saves a conversion at
every read. All others are raw bytes, and so are large HBM tensors, which would need twice or four
times their bytes. The representation of a region does not affect any bit of a result.
"""

from __future__ import annotations

import mmap
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from sys import getrefcount
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.artifact.records import Executable, PatternRecord, TensorRecord
from nkic.base.diagnostics import LimitHit, make
from nkic.base.text import size
from nkic.machine.codecs import decode, encode, storage
from nkic.machine.dtypes import DTYPES, DType
from nkic.machine.patterns import Dims
from nkic.machine.targets import PARTITIONS, TARGETS, Buffer
from nkic.simulate.in_place import InPlace, Piece, find, tensor_usage

# ------------------------------------------------------------------------------------------------
# Arrays for intermediate results of one step, shared by all steps: only one runs at a time.
# `nkic.machine.codecs` serves functions, which allocate at every call. A step allocates once,
# when it is decoded, and keeps its arrays.


class Scratch:
    """Allocates arrays of undefined contents, in C order, distinct within a step."""

    def __init__(self) -> None:
        self._buffers: list[NDArray[np.uint8]] = []
        self._views: dict[tuple[object, ...], NDArray[Any]] = {}
        self._next = 0

    def begin(self) -> None:
        """Start a new step, which may reuse the arrays of other steps."""
        self._next = 0

    def floats(self, shape: tuple[int, ...]) -> NDArray[np.float32]:
        return self.array(shape, np.float32)

    def array(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """Return an array that is not yet in use by the current step."""
        number = self._next
        self._next += 1
        key = (number, shape, dtype)
        view = self._views.get(key)
        if view is None:
            view = self._views[key] = self._view(number, shape, np.dtype(dtype))
        return view

    def _view(self, number: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        size = prod(shape) * dtype.itemsize
        if number == len(self._buffers):
            self._buffers.append(np.empty(0, np.uint8))
        if self._buffers[number].size < size:  # doubled, since users keep the outgrown buffer
            self._buffers[number] = np.empty(max(size, 2 * self._buffers[number].size), np.uint8)
        return self._buffers[number][:size].view(dtype).reshape(shape)


# ---- Large zeroed arrays whose pages are mapped before the first access -------------------------
# A page fault at first touch costs microseconds, many times the arithmetic on the page; pages
# mapped in one call, and in huge pages if available, cost a fraction. If the system does not
# support this, NumPy's zeros are used.

SMALL = 1 << 20  # bytes; smaller arrays gain nothing over NumPy's own allocator
LINE = 64  # bytes of a cache line
HUGE_PAGE = 1 << 21  # bytes of a huge page
POPULATE_WRITE = 23  # MADV_POPULATE_WRITE of Linux 5.14, which Python does not define
RESERVED = 1 << 26  # bytes of addresses that an arena reserves at once; pages are mapped with use
MAX_KEPT = 1 << 28  # bytes of results whose pages are kept
SOLE_REFERENCES = 2  # of an object with one owner: the owner's, and getrefcount's argument
GAP = 320  # bytes between neighbours, so that equal offsets in two arrays differ modulo 4 KiB


def zeros(rows: int, columns: int, dtype: type[np.generic]) -> NDArray[Any]:
    size = rows * columns * np.dtype(dtype).itemsize
    if size < SMALL or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.zeros((rows, columns), dtype)
    return _Pages(size).array(rows, columns, dtype)


class Arena:
    """Allocates adjacent zeroed arrays, in huge pages if available, which are freed together."""

    def __init__(self) -> None:
        self._pages: _Pages | None = None

    def zeros(self, rows: int, columns: int, dtype: type[np.generic]) -> NDArray[Any]:
        size = rows * columns * np.dtype(dtype).itemsize
        if size == 0 or not hasattr(mmap, "MADV_HUGEPAGE"):
            return np.zeros((rows, columns), dtype)
        if self._pages is None or self._pages.left < size:
            self._pages = _Pages(max(size, RESERVED))
        return self._pages.array(rows, columns, dtype)


def recycled(rows: int, columns: int, dtype: type[np.generic]) -> NDArray[Any]:
    """Return an array of undefined contents, for a result that the run writes in full.

    Pages are reused, by any program of the process, once no array refers to them.
    """
    size = rows * columns * np.dtype(dtype).itemsize
    if size < SMALL or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.zeros((rows, columns), dtype)
    pages = _idle(size) or _Pages(size)
    pages.used = 0
    array = pages.array(rows, columns, dtype)
    if size <= MAX_KEPT:
        _kept.append(pages)  # only now, since the array marks them as held
    return array


_kept: list[_Pages] = []  # the most recent last, held or idle, without those that are being taken


def _idle(size: int) -> _Pages | None:
    """Take idle pages of this size out of `_kept`, or make room there for new ones."""
    for pages in _kept[::-1]:  # the most recent are likely in the cache
        if len(pages.memory) == size and not pages.is_held:
            with suppress(ValueError):  # another thread has just taken them
                _kept.remove(pages)
                if not pages.is_held:
                    return pages
                _kept.append(pages)  # another thread has put them back in between
    while _kept and sum([len(pages.memory) for pages in [*_kept]]) + size > MAX_KEPT:
        with suppress(IndexError):
            _kept.pop(0)
    return None


class _Pages:
    """Reserved addresses: the first `mapped` bytes are mapped, and the first `used` are taken."""

    def __init__(self, size: int) -> None:
        try:
            self.memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except OSError as error:
            raise MemoryError(str(error)) from None
        self.used = self.mapped = 0
        with suppress(OSError):  # advice that this system does not support
            self.memory.madvise(mmap.MADV_HUGEPAGE)

    @property
    def left(self) -> int:
        return len(self.memory) - self.used

    @property
    def is_held(self) -> bool:
        """Whether an array refers to the memory."""
        return getrefcount(self.memory) > SOLE_REFERENCES

    def array(self, rows: int, columns: int, dtype: type[np.generic]) -> NDArray[Any]:
        """Return an array of shape (rows, columns) in the next bytes."""
        count, first = rows * columns, self.used
        last = first + count * np.dtype(dtype).itemsize
        self.used = min(-(-last // LINE) * LINE + GAP, len(self.memory))
        if last > self.mapped:
            end = min(-(-last // HUGE_PAGE) * HUGE_PAGE, len(self.memory))
            with suppress(OSError):
                self.memory.madvise(POPULATE_WRITE, self.mapped, end - self.mapped)
            self.mapped = end
        return np.frombuffer(self.memory, dtype, count, first).reshape(rows, columns)


# --------------------------------------------------------------------------------------------------

LARGE = 1 << 26  # bytes of an HBM tensor from which it stays raw
ALIGN = 8  # bytes; rows start at multiples, so that every element is aligned on the host
Contents = Mapping[int, NDArray[np.generic]]  # by tensor, in the storage type
GRID_TYPES = frozenset(d for d in DTYPES.values() if d.kind == "float" and d.size <= 2)


class Region:
    """An array: uint8 (partitions, bytes) if raw, float32 (partitions, elements) if decoded.

    HBM tensors have one row.
    """

    __slots__ = ("array", "grid")

    def __init__(self, array: NDArray[np.generic], grid: DType | None) -> None:
        self.array, self.grid = array, grid


_NO_BYTES = np.empty((1, 0), np.uint8)  # of regions whose values are elsewhere
EMPTY = Region(_NO_BYTES, None)


@dataclass(frozen=True, eq=False)
class WindowLayout:
    """The properties that windows onto many tensors share; interned.

    They are the buffer, the representation, and the bytes from one partition to the next on the
    host (HBM: 0).
    """

    buffer: Buffer
    grid: DType | None
    pitch: int
    on_chip: bool


class Home:
    """The location of a tensor: its region, first partition, and first byte within the region."""

    __slots__ = ("array", "byte", "first", "kind", "on_chip", "partition", "pitch", "region")

    def __init__(
        self, region: Region, kind: WindowLayout, partition: int, byte: int, pitch: int
    ) -> None:
        self.region = region
        self.array = region.array
        self.kind, self.partition, self.byte = kind, partition, byte
        self.pitch = pitch  # bytes of the tensor in each partition; in HBM, all bytes
        self.on_chip = kind.on_chip
        grid = region.grid  # `first`: the byte on the host
        self.first = kind.pitch * partition + (byte if grid is None else byte // grid.size * 4)


class WindowForm:
    """The properties of access patterns that do not depend on the address; interned.

    `shape`, `storage` and `strides` are those of NumPy arrays: (partitions, *dims), HBM (1, *dims).
    """

    __slots__ = ("dims", "dtype", "first", "kind", "shape", "storage", "strides", "unit")

    def __init__(
        self, kind: WindowLayout, dtype: DType, first: int, partitions: int, dims: Dims
    ) -> None:
        self.kind, self.dtype = kind, dtype
        self.first = first  # absolute partition
        self.dims = dims
        self.storage = storage(dtype) if kind.grid is None else _FLOAT32
        self.unit = self.storage.itemsize
        pairs = dims or ((1, 1),)
        self.shape = (partitions if kind.on_chip else 1, *(num for _, num in pairs))
        self.strides = (kind.pitch, *(step * self.unit for step, _ in pairs))


# An access pattern, its form in these memories, and its region on the device. The pattern is a
# reference, so that its identity stays unique.
Spot = tuple[PatternRecord, WindowForm, Region]


class Memory:
    """All regions of a program, and the scratch arrays that its steps share.

    `placed` has the locations of tensors on the device, by region; `homes` those of their values,
    which are elsewhere for tiles that are pieces of HBM tensors (if `in_place`). `slots` has, by
    its first tensor, the slot of each tensor whose bytes only tensors of the same bytes take over,
    if each of their accesses covers all of them: one flag tells whether they are initialised. With
    `is_separate`, all other tiles have memory of their own (`compact.py`), and none here, and
    tensors in the caller's arrays have none before `lend`.
    """

    def __init__(
        self,
        executable: Executable,
        contents: Contents | None = None,
        in_place: bool = False,
        is_separate: bool = False,
    ) -> None:
        self.executable = executable
        self.contents = contents or {}
        # HBM tensors that the caller fills or receives
        self.crossing = {*self.contents, *(p.tensor for p in executable.outputs)}
        self.is_separate = is_separate
        self.uses = tensor_usage(executable)
        self.scratch = Scratch()
        self._arena = Arena()
        self.placed: dict[int, Home] = {}
        self.groups: list[list[int]] = []  # of tensors in one region
        self.slots: list[int | None] = [None] * len(executable.tensors)
        self.in_place = InPlace()
        self._kinds: dict[tuple[Buffer, DType | None, int], WindowLayout] = {}
        self._forms: dict[tuple[WindowLayout, int, int, int, Dims], WindowForm] = {}
        # both by identity of the pattern
        self.spots: dict[int, Spot] = {}
        self._windows: dict[int, NDArray[Any]] = {}
        self._staged: dict[tuple[object, ...], int] = {}
        self._add_own_types()
        chips: dict[tuple[int, str], list[int]] = defaultdict(list)
        for number, tensor in enumerate(executable.tensors):
            if tensor.buffer.on_chip:
                chips[tensor.core, tensor.buffer.value].append(number)
            else:
                self.placed[number] = self._hbm(number, tensor)
        if in_place:
            self.in_place = find(
                executable, self.uses, self.contents.__contains__, self._same_representation
            )
        for numbers in chips.values():
            self._cut(numbers)
        self.homes = dict(self.placed)
        for pieces in (self.in_place.loaded, self.in_place.stored):
            for number, piece in pieces.items():
                self.homes[number] = self._piece(piece, self.placed[number])
        self.borrowed = self._borrowed()

    def _same_representation(self, tile: int, tensor: int) -> bool:
        is_decoded = self.placed[tensor].region.grid is not None
        return is_decoded == (self.executable.tensors[tile].dtype in GRID_TYPES)

    def _piece(self, piece: Piece, tile_home: Home) -> Home:
        tensor_home = self.placed[piece.pattern.tensor]
        grid = tensor_home.region.grid
        unit = piece.pattern.dtype.size if grid is None else 4
        layout = self._layout(tile_home.kind.buffer, grid, piece.pitch * unit)
        home = Home(tensor_home.region, layout, tile_home.partition, 0, tile_home.pitch)
        home.first = tensor_home.first + piece.pattern.offset * unit
        return home

    def _add_own_types(self) -> None:
        """Inputs and outputs are also accessed in their own type."""
        inputs = {p.tensor for p in self.executable.inputs}
        for number in self.crossing | inputs:
            self.uses[number].types += (self.executable.tensors[number].dtype,)

    def _hbm(self, number: int, tensor: TensorRecord) -> Home:
        size = prod(tensor.shape) * tensor.dtype.size
        grid = self._grid([number]) if size < LARGE else None
        is_lent = self.is_separate and grid is None and number in self.crossing
        region = Region(_NO_BYTES, None) if is_lent else self._filled(number, grid)
        return Home(region, self._kind(tensor.buffer, region), 0, 0, size)

    def _filled(
        self, number: int, grid: DType | None, allocate: Callable[..., NDArray[Any]] = zeros
    ) -> Region:
        """Return an HBM tensor's region, filled; a read-only tensor is the caller's array.

        `allocate` supplies the memory of a tensor without initial contents.
        """
        initial, tensor = self.contents.get(number), self.executable.tensors[number]
        if initial is not None and grid is None and not self.uses[number].writes:
            row = np.ascontiguousarray(initial).reshape(1, -1).view(np.uint8)
            row.flags.writeable = False
            return Region(row, None)
        size = prod(tensor.shape) * tensor.dtype.size
        region = _region(1, size, grid, allocate if initial is None else zeros)
        if initial is not None:
            _fill(region, initial)
        return region

    def _grid(self, numbers: Iterable[int]) -> DType | None:
        """Return the one narrow float type that all accesses to these tensors use, or None."""
        only: DType | None = None
        for number in numbers:
            for dtype in self.uses[number].types or (self.executable.tensors[number].dtype,):
                if only is not None and dtype is not only:
                    return None
                only = dtype
        return only if only in GRID_TYPES else None

    def _cut(self, numbers: list[int]) -> None:
        """Cut one memory of one core into regions: runs of tensors whose bytes overlap."""
        tensors = self.executable.tensors
        group: list[int] = []
        pitches: list[int] = []
        end = -1
        for low, number in sorted([(tensors[n].byte, n) for n in numbers]):
            if group and low >= end:
                self._settle(group, pitches, end)
                group, pitches, end = [], [], -1
            tensor = tensors[number]
            pitch = max(1, prod(tensor.shape[1:]) * tensor.dtype.size)
            if low + pitch > end:
                end = low + pitch
            group.append(number)
            pitches.append(pitch)
        if group:
            self._settle(group, pitches, end)

    def _settle(self, numbers: list[int], pitches: list[int], end: int) -> None:
        """Make the region of these tensors, which are in order of their first byte."""
        tensors = [self.executable.tensors[n] for n in numbers]
        low, grid = tensors[0].byte // ALIGN * ALIGN, self._grid(numbers)
        if self.is_separate or all(self.in_place.get(n) is not None for n in numbers):
            region = Region(_NO_BYTES, grid)  # no values are stored here
        else:
            rows = max([tensor.partition + tensor.shape[0] for tensor in tensors])
            size = -(-(end - low) // ALIGN) * ALIGN
            region = _region(rows, size, grid, self._arena.zeros)
        kind = self._kind(tensors[0].buffer, region)
        self.groups.append(numbers)
        for number, tensor, pitch in zip(numbers, tensors, pitches, strict=True):
            self.placed[number] = Home(region, kind, tensor.partition, tensor.byte - low, pitch)
        if tensors[0].byte == tensors[-1].byte and len({*pitches}) == 1:
            self._add_slot(numbers, tensors, pitches[0])

    def _add_slot(self, numbers: list[int], tensors: list[TensorRecord], pitch: int) -> None:
        """Add the slot of these tensors, which have the same bytes, if it is one."""
        if len({tensor.partition for tensor in tensors}) > 1:
            return
        for number, tensor in zip(numbers, tensors, strict=True):
            use = self.uses[number]
            if use.columns < pitch or use.rows < tensor.shape[0] or number in self.contents:
                return
        for number in numbers:
            self.slots[number] = numbers[0]

    def _kind(self, buffer: Buffer, region: Region) -> WindowLayout:
        row = region.array.strides[0] if buffer.on_chip else 0
        return self._layout(buffer, region.grid, row)

    def _layout(self, buffer: Buffer, grid: DType | None, row: int) -> WindowLayout:
        key = (buffer, grid, row)
        if key not in self._kinds:
            self._kinds[key] = WindowLayout(*key, buffer.on_chip)
        return self._kinds[key]

    def spot(self, pattern: PatternRecord) -> Spot:
        """Make the spot of `pattern`, which has none yet. Equal patterns are mostly interned."""
        region = self.placed[pattern.tensor].region
        spot = self.spots[id(pattern)] = (pattern, self.form(pattern), region)
        return spot

    def cached_window(self, pattern: PatternRecord) -> NDArray[Any]:
        window = self._windows.get(id(pattern))
        if window is None:
            _, form, _ = self.spots.get(id(pattern)) or self.spot(pattern)
            window = self._windows[id(pattern)] = self.window(pattern, form)
        return window

    def form(self, pattern: PatternRecord) -> WindowForm:
        tensor, dtype, start, partitions, _, dims, _ = pattern
        home = self.homes[tensor]
        key = (home.kind, dtype.code, home.partition + start, partitions, dims)
        form = self._forms.get(key)
        if form is None:
            first = home.partition + start
            form = self._forms[key] = WindowForm(home.kind, dtype, first, partitions, dims)
        return form

    def window(self, pattern: PatternRecord, form: WindowForm | None = None) -> NDArray[np.generic]:
        """Return the elements of an access, in the shape of its form.

        They are float32 in a decoded region, else of the storage type.
        """
        form = form or self.form(pattern)
        tensor, _, start, _, offset, _, _ = pattern
        home, strides = self.homes[tensor], form.strides
        first = home.first + start * strides[0] + offset * form.unit
        return np.ndarray(form.shape, form.storage, home.array, first, strides)

    def may_overlap(self, first: PatternRecord, second: PatternRecord) -> bool:
        home, other = self.placed[first.tensor], self.placed[second.tensor]
        if home.region is not other.region:
            return False
        if home.byte + home.pitch <= other.byte or other.byte + other.pitch <= home.byte:
            return False
        if home.on_chip and not _overlaps(_rows(home, first), _rows(other, second)):
            return False
        return _overlaps(_bytes(home, first), _bytes(other, second))

    def stage(self, pattern: PatternRecord, slot: object) -> PatternRecord:
        """Return `pattern` without its run-time offset, over staging memory.

        Patterns of one size in a slot share their memory: its contents are lost when the next one
        runs.
        """
        home, size = self.homes[pattern.tensor], pattern.dtype.size
        dims: list[tuple[int, int]] = []
        for _, num in reversed(pattern.dims):
            dims.insert(0, (size // pattern.dtype.size, num))
            size *= num
        rows = home.partition + pattern.start + pattern.partitions if home.on_chip else 1
        key = (slot, home.kind.buffer, home.region.grid, home.partition, rows, size)
        number = self._staged.get(key)
        if number is None:
            number = self._staged[key] = -1 - len(self.homes)
            width = -(-size // ALIGN) * ALIGN
            region = _region(rows, width, home.region.grid, self._arena.zeros)
            kind = self._kind(home.kind.buffer, region)
            self.homes[number] = Home(region, kind, home.partition, 0, size)
            self.placed[number] = self.homes[number]
        return pattern._replace(tensor=number, offset=0, dims=tuple(dims), dynamic=None)

    # ---- runs whose order is known ----

    @property
    def bytes(self) -> int:
        """The memory that is kept between two runs, without the pages of results."""
        arrays = {id(home.array): home.array for home in self.homes.values()}
        return sum([array.nbytes for array in arrays.values()])

    def _borrowed(self) -> dict[int, list[int]]:
        """Return the HBM tensors in the caller's arrays, each with the tiles that are pieces of it.

        These are inputs and results, whose memory differs in every run.
        """
        raw = [n for n in self.crossing if self.placed[n].region.grid is None]
        borrowed: dict[int, list[int]] = {number: [] for number in raw}
        for tile, piece in (*self.in_place.loaded.items(), *self.in_place.stored.items()):
            if piece.pattern.tensor in borrowed:
                borrowed[piece.pattern.tensor].append(tile)
        return borrowed

    def is_tile(self, number: int) -> bool:
        return self.homes[number].on_chip and self.in_place.get(number) is None

    def lend(self, contents: Contents, fills_results: bool) -> None:
        """Use the caller's arrays as inputs, and new ones as results.

        `fills_results` tells that the run writes every byte of the results.
        """
        self.contents = contents
        for number in self.borrowed:
            allocate = recycled if fills_results else zeros
            self._set_region(number, self._filled(number, None, allocate))

    def refill(self, contents: Contents) -> None:
        """Begin another run; memory that it writes before reading keeps its old contents."""
        for number in self.crossing - self.borrowed.keys():
            region, initial = self.homes[number].region, contents.get(number)
            _fill(region, initial) if initial is not None else region.array.fill(0)

    def give_back(self) -> None:
        self.contents = {}
        self.spots.clear()
        self._windows.clear()
        for number in self.borrowed:
            self._set_region(number, EMPTY)

    def is_borrowed(self, number: int) -> bool:
        """Return whether a tensor's values are in an array of the caller's."""
        piece = self.in_place.get(number)
        return (number if piece is None else piece.pattern.tensor) in self.borrowed

    def _set_region(self, number: int, region: Region) -> None:
        for tensor in (number, *self.borrowed[number]):
            self.homes[tensor].region, self.homes[tensor].array = region, region.array

    def contents_of(self, number: int, rounded: bool) -> NDArray[np.generic]:
        """Return a whole HBM tensor in its storage type; `rounded`: values are on their grid."""
        tensor, region = self.executable.tensors[number], self.homes[number].region
        if region.grid is not None:
            row = np.asarray(region.array[0], np.float32)
            return encode(row, region.grid, on_grid=rounded).reshape(tensor.shape)
        contents: NDArray[np.generic] = region.array[0].view(storage(tensor.dtype))
        return contents.reshape(tensor.shape)


_FLOAT32 = np.dtype(np.float32)


def _rows(home: Home, pattern: PatternRecord) -> tuple[int, int]:
    first = home.partition + pattern.start
    return first, first + pattern.partitions


def _bytes(home: Home, pattern: PatternRecord) -> tuple[int, int]:
    low, high = pattern.extent()
    return home.byte + low, home.byte + high


def _overlaps(first: tuple[int, int], second: tuple[int, int]) -> bool:
    return first[0] < second[1] and second[0] < first[1]


def _region(
    rows: int, size: int, grid: DType | None, allocate: Callable[..., NDArray[Any]] = zeros
) -> Region:
    if grid is not None:
        return Region(allocate(rows, -(-size // grid.size), np.float32), grid)
    return Region(allocate(rows, size, np.uint8), None)


def _fill(region: Region, values: NDArray[np.generic]) -> None:
    flat = np.ascontiguousarray(values).reshape(-1)
    if region.grid is not None:
        decode(flat, region.grid, region.array[0])
    else:
        region.array[0] = flat.view(np.uint8)


# ---- Memory for tiles in a run whose order is known ---------------------------------------------
# The device's addresses rotate, so that engines need not wait for each other; a processor's cache
# prefers reuse. No value passes from one on-chip tensor to another by sharing bytes, since reading
# bytes that the tensor itself has not written is a fault. So each tensor may be at any address
# from its first use to its last, and the next tensor of its size reuses that memory, which is
# still in the cache.


class Compact:
    """Memory for the on-chip tensors that are not pieces of HBM tensors."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.bytes = 0
        self._arena = Arena()
        self._held: dict[int, NDArray[Any]] = {}  # by tensor
        self._free: dict[tuple[int, ...], list[NDArray[Any]]] = defaultdict(list)  # by shape
        self._windows: dict[tuple[object, ...], NDArray[Any]] = {}  # by array, form and address

    def window(self, pattern: PatternRecord, form: WindowForm) -> NDArray[Any] | None:
        """Return `Memory.window`, or None over the caller's memory, which differs between runs."""
        tensor, _, start, _, offset, _, _ = pattern
        array = self._held.get(tensor)
        if array is None:
            if not self.memory.is_tile(tensor):
                is_borrowed = self.memory.is_borrowed(tensor)
                return None if is_borrowed else self.memory.window(pattern, form)
            array = self._held[tensor] = self._take(tensor)
        key = (id(array), form, start, offset)
        found = self._windows.get(key)
        if found is None:
            row = array.strides[0]
            first, strides = start * row + offset * form.unit, form.strides
            found = np.ndarray(form.shape, form.storage, array, first, (row, *strides[1:]))
            self._windows[key] = found
        return found

    def release(self, tensor: int) -> None:
        array = self._held.pop(tensor, None)
        if array is not None:
            self._free[array.shape].append(array)

    def _take(self, tensor: int) -> NDArray[Any]:
        home, rows = self.memory.homes[tensor], self.memory.executable.tensors[tensor].shape[0]
        grid = home.region.grid
        size = home.pitch if grid is None else home.pitch // grid.size * 4
        shape = (rows, -(-size // ALIGN) * ALIGN)
        free = self._free[shape]
        if free:
            return free.pop()
        self.bytes += shape[0] * shape[1]
        return self._arena.zeros(*shape, np.uint8)


# ---- An estimate of the host memory that a run will take, made before any is taken --------------

MIN_ELEMENT_BYTES = 4  # narrow floats are kept as float32
FLAGS_SHARE = 0.25  # typical maximum for the flags of initialised bytes, per byte
BASE = 64 << 20  # the interpreter and its libraries


def footprint(executable: Executable) -> int:
    """Return an estimate in bytes from sizes alone: memories, inputs and outputs."""
    target = TARGETS[executable.target]
    memory = PARTITIONS * (target.sbuf_bytes + target.psum_bytes) * executable.cores
    on_chip = sum(_stored_bytes(t) for t in executable.tensors if t.buffer.on_chip)
    hbm = sum(_stored_bytes(t) for t in executable.tensors if not t.buffer.on_chip)
    ports = (*executable.inputs, *executable.outputs)
    arrays = sum(_stored_bytes(executable.tensors[port.tensor]) for port in ports)
    return BASE + arrays + int((min(memory * MIN_ELEMENT_BYTES, on_chip) + hbm) * (1 + FLAGS_SHARE))


def _stored_bytes(tensor: TensorRecord) -> int:
    elements = max(1, tensor.bytes // tensor.dtype.size)
    rows = tensor.shape[0] if tensor.buffer.on_chip else 1
    return rows * elements * max(MIN_ELEMENT_BYTES, tensor.dtype.size)


def check_memory(executable: Executable, limit: int | None, ranks: int = 1) -> None:
    """Raise `LimitHit` if the run would take more than `limit` bytes, or than the host has."""
    needed, available = footprint(executable) * ranks, physical_memory()
    if limit is not None and needed > limit:
        message = f"the simulation needs about {size(needed)}, `--limit memory` is {size(limit)}"
        raise LimitHit([make("memory-limit", message, help="raise the limit, or drop it")])
    if limit is None and available is not None and needed > available:
        message = f"the simulation needs about {size(needed)}, this machine has {size(available)}"
        help = "simulate smaller shapes; --limit memory=SIZE sets another limit"
        raise LimitHit([make("memory-limit", message, help=help)])


def physical_memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
