"""The accesses of instructions to memory, engine state and registers, derived from the rows.

No code is shared with depend and allocate, whose results are checked against this.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from math import prod
from operator import getitem, itemgetter
from typing import Any

from nkic.machine.operands import Access, Effects, Facts, Register, Row, no_access, no_effects
from nkic.machine.targets import Address, Buffer, Target
from nkic.program.program import (
    AccessPattern,
    Body,
    Instruction,
    Program,
    Tensor,
    View,
    instructions,
)
from nkic.prove.model import READ, UPDATE, WRITE, Box, Range, Storage

# ---- Areas of tensors, and the cells into which areas cut a tensor ------------------------------
# An area is a box over the axes of the tensor's shape. It covers every byte that a pattern
# touches, and more if the pattern does not run along the axes. Two accesses conflict if their
# areas share a cell, so no pair of accesses is compared.

Dims = tuple[tuple[int, int], ...]
MOST_CELLS = 1 << 16  # per tensor; beyond it neighbouring cells are merged


def area(axes: tuple[int, ...], size: int, offset: int, dims: Dims) -> Box:
    """Return the box over `axes` of the elements, of `size` bytes, that (step, num) pairs visit."""
    reach = _reach(axes, size, dims)
    if reach is not None:
        box, rest = [], offset * size
        for length, pitch, span in reach:
            first, rest = divmod(rest, pitch)
            if first + span >= length:
                return _hull(axes, size, offset, dims)
            box.append(_side(first, first + span + 1))
        return tuple(box)
    return _hull(axes, size, offset, dims)


def are_tiles(axes: tuple[int, ...], size: int, offsets: Iterable[int], dims: Dims) -> bool:
    """Return whether the areas of one pattern at different offsets certainly share no byte.

    They do not if, along each axis, they start at multiples of their own length.
    """
    reach = _reach(axes, size, dims)
    if reach is None:
        return False
    rest = [offset * size for offset in offsets]
    for length, pitch, span in reach:
        for first in {byte // pitch for byte in rest}:
            if first % (span + 1) or first + span >= length:
                return False
        rest = [byte % pitch for byte in rest]
    return True


@lru_cache(maxsize=65536)
def _side(first: int, end: int) -> Range:
    """Return an interned side: the boxes of a tensor's tiles have few different ones."""
    return first, end


@lru_cache(maxsize=4096)
def pitches(axes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the byte stride of each axis."""
    return tuple(prod(axes[at + 1 :]) for at in range(len(axes)))


@lru_cache(maxsize=65536)
def _reach(axes: tuple[int, ...], size: int, dims: Dims) -> tuple[tuple[int, int, int], ...] | None:
    """Return the length, stride and extent of the pattern along each axis.

    Return None if the pattern does not follow the axes.
    """
    spans = [0] * len(axes)
    for step, num in dims:
        if step < 0 < num - 1:
            return None
        if num > 1 and step > 0 and not _along(axes, spans, step * size, num):
            return None
    spans[-1] += size - 1
    return tuple(zip(axes, pitches(axes), spans, strict=True))


def _along(axes: tuple[int, ...], spans: list[int], step: int, num: int) -> bool:
    """Add `num` steps of `step` bytes to `spans`, and return whether they follow the axes.

    A run that fills an axis continues along the next outer one.
    """
    widths = pitches(axes)
    axis = next(axis for axis, width in enumerate(widths) if step % width == 0)
    step //= widths[axis]
    while axis > 0 and spans[axis] == 0 and step * num > axes[axis]:
        row, rest = divmod(axes[axis], step)
        if rest or num % row:
            return False
        spans[axis] = axes[axis] - step
        axis, step, num = axis - 1, 1, num // row
    spans[axis] += step * (num - 1)
    return True


def _hull(axes: tuple[int, ...], size: int, offset: int, dims: Dims) -> Box:
    """Return the bounding box of all bytes from the lowest to the highest."""
    ends = [step * (num - 1) for step, num in dims]
    low = (offset + sum(min(0, end) for end in ends)) * size
    high = (offset + sum(max(0, end) for end in ends)) * size + size - 1
    box, inside = [], True
    for length, pitch in zip(axes, pitches(axes), strict=True):
        (first, low), (last, high) = divmod(low, pitch), divmod(high, pitch)
        box.append((first, last + 1) if inside else (0, length))
        inside = inside and first == last
    return tuple(box)


class Grid:
    """A tensor cut at the sides of boxes. Its cells are numbered from `base`."""

    def __init__(self, boxes: Collection[Box], base: int = 0) -> None:
        rank = len(next(iter(boxes)))
        sides = [set(map(itemgetter(axis), boxes)) for axis in range(rank)]
        cuts = _thinned([sorted({end for side in axis for end in side}) for axis in sides])
        sizes = [max(1, len(axis) - 1) for axis in cuts]
        self.base = base
        self.count = prod(sizes)
        # The cells along each axis, by the side of a box, and the axis's number of cells.
        self.along = [
            ({side: _between(cut, side) for side in axis}, size)
            for axis, cut, size in zip(sides, cuts, sizes, strict=True)
        ]
        # Per axis, what a side that covers one cell adds to the cell's number.
        self.steps = [
            {side: first * stride for side, (first, count) in spans.items() if count == 1}
            for (spans, _), stride in zip(self.along, pitches(tuple(sizes)), strict=True)
        ]

    def cells(self, box: Box) -> Sequence[int]:
        """Return the numbers of the cells that `box`, one of the grid's own boxes, covers."""
        try:
            return (sum(map(getitem, self.steps, box), self.base),)
        except KeyError:
            return self._several(box)

    def _several(self, box: Box) -> Sequence[int]:
        numbers: Sequence[int] = (0,)
        for side, (spans, size) in zip(box, self.along, strict=True):
            first, count = spans[side]
            cells = range(first, first + count)
            numbers = [number * size + cell for number in numbers for cell in cells]
        return [self.base + number for number in numbers]


def _between(cuts: Sequence[int], side: Range) -> tuple[int, int]:
    """Return the first cell of a side of a box, and the number of cells, which is at least 1."""
    first = bisect_right(cuts, side[0]) - 1
    return first, max(1, bisect_left(cuts, side[1]) - first)


def _thinned(cuts: list[list[int]]) -> list[list[int]]:
    """Drop every other inner cut of the finest axis until there are few enough cells."""
    while prod(max(1, len(axis) - 1) for axis in cuts) > MOST_CELLS:
        finest = max(cuts, key=len)
        finest[:] = [*finest[:-1:2], finest[-1]]
    return cuts


def bands(starts: Sequence[int], start: int, count: int) -> range:
    """Return the bands that a tensor covers; bands are cut at the start partitions `starts`."""
    return range(bisect_left(starts, start), bisect_left(starts, start + count))


# ------------------------------------------------------------------------------------------------
# The places of tensors on chip: the bytes that they get, which tensors may get in turn.
# Most places share no byte with another one. There each tensor has one former owner, the tensor
# that used the place before; the bytes of the others are followed one by one (`order.py`).

Place = tuple[str, int, int, int, int]  # the fields of `Storage` after `key`


class Places:
    """The places of `tensors`; `unplaced` are those without an address."""

    def __init__(self, tensors: Mapping[int, Tensor], addresses: Mapping[int, Address]) -> None:
        self.tenants: dict[Place, list[int]] = {}  # in the order of `tensors`
        self.unplaced: list[int] = []
        sbuf, psum = Buffer.SBUF.value, Buffer.PSUM.value
        for number, tensor in tensors.items():
            if not tensor.on_chip:
                continue
            address = addresses.get(number)
            if address is None:
                self.unplaced.append(number)
                continue
            memory = psum if tensor.buffer is Buffer.PSUM else sbuf
            place = (memory, *address, tensor.partitions, tensor.bytes)
            tenants = self.tenants.get(place)
            if tenants is None:
                self.tenants[place] = [number]
            else:
                tenants.append(number)
        self.shared = set(chain(_shared(self.tenants, sbuf), _shared(self.tenants, psum)))

    def storages(self, places: Iterable[Place]) -> list[Storage]:
        """Return the storage of the tensors in `places`."""
        return [Storage(number, *place) for place in places for number in self.tenants[place]]

    def exclusive(self) -> Iterator[list[int]]:
        """Yield the tensors of each place that shares no byte with another place."""
        for place, tenants in self.tenants.items():
            if place not in self.shared:
                yield tenants

    def former(self, tensor: int) -> int:
        """Return the tensor before `tensor` in its place."""
        tenants = next(tenants for tenants in self.tenants.values() if tensor in tenants)
        return tenants[tenants.index(tensor) - 1]


def _shared(places: Iterable[Place], memory: str) -> Iterator[Place]:
    """Yield the places in `memory` that share bytes with another one."""
    own = sorted([place for place in places if place[0] == memory], key=lambda place: place[2])
    starts = sorted({partition for _, partition, *_ in own})
    # By band of partitions: the place that ends last of those that begin at or before this one.
    furthest: list[Place | None] = [None] * len(starts)
    for place in own:
        _, partition, byte, partitions, size = place
        for band in bands(starts, partition, partitions):
            other = furthest[band]
            if other is not None and byte < other[2] + other[4]:
                yield place
                yield other
            if other is None or byte + size > other[2] + other[4]:
                furthest[band] = place


# --------------------------------------------------------------------------------------------------

MODES = {
    Access.READ: READ,
    Access.WRITE: WRITE,
    Access.UPDATE: UPDATE,
    Access.ORDER: UPDATE,  # nothing may be reordered across it
}


# One access: the cells of a tensor or the cell of a piece of state; the mode; the tensor's number,
# or -1 for state. Plain tuples, since there are about three per instruction.
Touch = tuple[list[int], int, int]
Touches = tuple[Touch, ...]
Areas = dict[Box, list[int]]  # of one tensor: its cells, to be filled in


class Reading:
    """The accesses of all instructions of one core, by number."""

    def __init__(self, body: Body = ()) -> None:
        self.body = body
        self.names: dict[int, str] = {}  # of tensors that are not in `tensors`: those of a file
        # whole-tensor boxes, if a tensor is also accessed in parts
        self.wholes: dict[int, Box] = {}
        self.touches: dict[int, Touches] = {}
        self.tensors: dict[int, Tensor] = {}
        self.cells: dict[int, Sequence[int]] = {}  # of each tensor
        self.count = 0  # of cells, numbered over all tensors and state
        self.state: dict[str, list[int]] = {}  # the cell of each piece of engine state, by name
        self._placed: tuple[Program, Places] | None = None

    def cell_of(self, name: str, mode: int) -> Touch:
        """Return an access to a piece of engine state or a register."""
        cells = self.state.get(name)
        if cells is None:
            cells = self.state[name] = [self.count]
            self.count += 1
        return cells, mode, -1

    def register(self, number: int, mode: int) -> Touch:
        return self.cell_of(f"register {number}", mode)

    def places(self, placed: Program) -> Places:
        """Return the places of the on-chip tensors in `placed`."""
        if self._placed is None or self._placed[0] is not placed:
            self._placed = placed, Places(self.tensors, placed.addresses)
        return self._placed[1]

    def what(self, cells: Sequence[int], storage: int) -> tuple[str, str]:
        """Return the rule that covers an access, and the name of what is accessed."""
        if storage >= 0:
            return "memory", f"`{self.name(storage)}`"
        name = next(name for name, cell in self.state.items() if cell[0] == cells[0])
        return ("register" if name.startswith("register ") else "state"), name

    def cut(self, areas: Mapping[int, Areas]) -> None:
        """Assign cells to the areas of tensors that are accessed in several ways."""
        for number, boxes in areas.items():
            if len(boxes) == 1:  # the most frequent case
                (cells,) = boxes.values()
                cells[:] = (self.count,)
                self.count += 1
                continue
            whole = self.wholes[number]
            grid = Grid({box or whole for box in boxes} if WHOLE in boxes else boxes, self.count)
            for box, cells in boxes.items():
                cells.clear()  # extending an empty list allocates no spare room
                cells.extend(grid.cells(box or whole))
            self.count += grid.count

    def name(self, number: int) -> str:
        return self.tensors[number].name if number in self.tensors else self.names[number]


def read(program: Program) -> tuple[Reading, ...]:
    """Return the accesses of every core of a lowered program."""
    return tuple(_Reader(body, program.target).read() for body in program.cores)


def reading_of(body: Body, target: Target, reading: Reading) -> Reading:
    """Return the accesses of `body`: `reading`, unless allocate has moved instructions."""
    return reading if reading.body is body else _Reader(body, target).read()


def axes_of(tensor: Tensor) -> tuple[int, ...]:
    """Return the lengths of a tensor's axes without partitions, the innermost in bytes.

    This is independent of `program/overlap.py`, which the stages use, so that no error is shared.
    """
    return _axes(tensor.shape[1:] if tensor.on_chip else tensor.shape, tensor.dtype.size)


@lru_cache(maxsize=4096)
def _axes(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    sizes = shape or (1,)
    return (*sizes[:-1], sizes[-1] * size)


WHOLE: Box = ()  # stands for the box of a whole tensor, the most frequent area


def modes_of(row: Row, facts: Facts) -> tuple[int, ...]:
    """Return the access mode of each operand: that of the row, refined by the attributes."""
    return tuple(MODES[row.access(o.name, facts) or o.access] for o in row.operands)


def area_of(pattern: AccessPattern) -> Box:
    """Return the area that `pattern` may touch: the whole tensor if it has a run-time offset."""
    return _area(pattern.tensor, form_of(pattern), pattern.offset)


# An access pattern without its tensor and offset: its dimensions, the size of its elements, its
# first partition and number of partitions; None if it covers the tensor.
Form = tuple[Dims, int, int, int] | None


def form_of(pattern: AccessPattern) -> Form:
    """Return the form of `pattern`; with a run-time offset, it may cover the tensor."""
    tensor, dtype, start, partitions, offset, dims, dynamic = pattern
    if dynamic is not None:
        return None
    if (
        offset == 0
        and dtype is tensor.dtype
        and tensor.on_chip
        and partitions == tensor.partitions
        and dims == ((1, tensor.free),)
    ):
        return None
    return dims, dtype.size, start, partitions


def _area(tensor: Tensor, form: Form, offset: int) -> Box:
    """Return the area of a pattern of `form` at `offset`."""
    if form is None:
        return WHOLE
    dims, size, start, partitions = form
    box = area(axes_of(tensor), size, offset, dims)
    return ((start, start + partitions), *box) if tensor.on_chip else box


def _are_tiles(tensor: Tensor, form: Form, offsets: Iterable[int]) -> bool:
    return form is None or are_tiles(axes_of(tensor), form[1], offsets, form[0])


class _Reader:
    """Derives the accesses of one body.

    Patterns and attributes are memoised by identity; the program keeps them alive meanwhile.
    """

    def __init__(self, body: Body, target: Target) -> None:
        self.target = target
        self.reading = Reading(body)
        # The first access to each tensor, and all accesses to those accessed in several ways.
        self.first: dict[int, tuple[Form, int, list[int]]] = {}
        self.several: dict[int, dict[Form, dict[int, list[int]]]] = {}
        self.cells_by_id: dict[int, list[int]] = {}  # cells by the pattern's identity
        self.fixed: dict[Row, tuple[int, ...]] = {}
        self.refined: dict[tuple[Row, int], tuple[int, ...]] = {}
        self.effects: dict[tuple[object, ...], Effects] = {}

    def read(self) -> Reading:
        touches = self.reading.touches
        for instruction in instructions(self.reading.body):
            touches[instruction.number] = self.instruction(instruction)
        for number, forms in self.several.items():
            self.cut(self.reading.tensors[number], forms)
        return self.reading

    def instruction(self, instruction: Instruction) -> Touches:
        touches: list[Touch] = []
        cells_by_id, row = self.cells_by_id, instruction.row
        for operand, mode in zip(
            instruction.operands, self.fixed.get(row) or self.modes(instruction), strict=True
        ):
            if type(operand) is AccessPattern:
                cells = cells_by_id.get(id(operand))
                if cells is None:
                    cells = self.cells(operand)
                touches.append((cells, mode, operand.tensor.number))
                if operand.dynamic is not None:
                    touches.append(self.source(operand))
            elif type(operand) is Register:
                touches.append(self.reading.register(operand.number, mode))
            elif type(operand) is View:
                raise TypeError(f"{row.name} has not been lowered")
        if row.effects is not no_effects:
            touches += self.state(instruction)
        return tuple(touches)

    def modes(self, instruction: Instruction) -> tuple[int, ...]:
        """Return the operands' access modes, if they depend on attributes or are not cached."""
        row = instruction.row
        if row.access is no_access:
            modes = self.fixed[row] = tuple(MODES[o.access] for o in row.operands)
            return modes
        key = (row, id(instruction.attributes))
        if key not in self.refined:
            self.refined[key] = modes_of(row, instruction.facts(self.target))
        return self.refined[key]

    def cells(self, pattern: AccessPattern) -> list[int]:
        """Return the cells of a pattern.

        For a tensor that is accessed in several ways, `cut` fills them in later.
        """
        form, number = form_of(pattern), pattern.tensor.number
        offset = pattern.offset if form is not None else 0
        first = self.first.get(number)
        if first is None:
            self.reading.tensors[number] = pattern.tensor
            cells = [self.reading.count]
            self.reading.count += 1
            self.first[number] = form, offset, cells
            self.reading.cells[number] = cells
        elif first[1] == offset and first[0] == form:
            cells = first[2]
        else:
            forms = self.several.get(number)
            if forms is None:
                forms = self.several[number] = {first[0]: {first[1]: first[2]}}
            cells = forms.setdefault(form, {}).setdefault(offset, [])
        self.cells_by_id[id(pattern)] = cells
        return cells

    def cut(self, tensor: Tensor, forms: Mapping[Form, Mapping[int, list[int]]]) -> None:
        """Number the cells of a tensor that is accessed in several ways, by form and offset."""
        reading, base = self.reading, self.reading.count
        form, offsets = next(iter(forms.items()))
        if len(forms) == 1 and _are_tiles(tensor, form, offsets):
            for number, cells in enumerate(offsets.values(), base):
                cells[:] = (number,)
            reading.count += len(offsets)
        else:
            self.cut_areas(tensor, forms)
        reading.cells[tensor.number] = range(base, reading.count)

    def cut_areas(self, tensor: Tensor, forms: Mapping[Form, Mapping[int, list[int]]]) -> None:
        """Number the cells of a tensor by the areas of its accesses."""
        reading = self.reading
        box = tuple((0, length) for length in axes_of(tensor))
        reading.wholes[tensor.number] = ((0, tensor.partitions), *box) if tensor.on_chip else box
        areas: Areas = {}
        equal = [
            (cells, areas.setdefault(_area(tensor, form, offset), cells))
            for form, offsets in forms.items()
            for offset, cells in offsets.items()
        ]
        reading.cut({tensor.number: areas})
        for cells, first in equal:
            cells[:] = first

    def source(self, pattern: AccessPattern) -> Touch:
        """Return the access that reads a pattern's run-time offset."""
        source: Any = pattern.dynamic.source if pattern.dynamic is not None else None
        if type(source) is Register:
            return self.reading.register(source.number, READ)
        cells = self.cells_by_id.get(id(source))
        return self.cells(source) if cells is None else cells, READ, source.tensor.number

    def state(self, instruction: Instruction) -> Iterator[Touch]:
        key = (
            instruction.row,
            id(instruction.attributes),
            instruction.engine,
            *map(_form, instruction.operands),
        )
        effects = self.effects.get(key)
        if effects is None:
            effects = self.effects[key] = instruction.row.effects(instruction.facts(self.target))
        for name in dict.fromkeys((*effects.reads, *effects.writes)):
            mode = READ * (name in effects.reads) + WRITE * (name in effects.writes)
            yield self.reading.cell_of(name, mode)


def _form(operand: object) -> object:
    """Return the operand without its address, which no row's effects depend on."""
    if type(operand) is not AccessPattern:
        return operand
    return operand.tensor.buffer, operand.dtype, operand.partitions, operand.dims
