"""The accesses of instructions to memory, engine state and registers, derived from the rows.

No code is shared with depend and allocate, whose results are checked against this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from nkic.ir.program import Body, Instruction, Program, instructions
from nkic.ir.tensors import AccessPattern, Tensor, View
from nkic.machine.facts import Facts, Register
from nkic.machine.memory import Buffer
from nkic.machine.operands import Access, Effects, Row, no_access, no_effects
from nkic.machine.targets import Target
from nkic.prove.boxes import Dims, Grid, are_tiles, area
from nkic.prove.model import READ, UPDATE, WRITE, Box, Storage

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
        self.count = 0  # of cells, numbered over all tensors and state
        self.state: dict[str, list[int]] = {}  # the cell of each piece of engine state, by name
        self._placed: tuple[object, list[Storage]] = (None, [])

    def cell_of(self, name: str, mode: int) -> Touch:
        """Return an access to a piece of engine state or a register."""
        cells = self.state.get(name)
        if cells is None:
            cells = self.state[name] = [self.count]
            self.count += 1
        return cells, mode, -1

    def register(self, number: int, mode: int) -> Touch:
        """Return an access to a register."""
        return self.cell_of(f"register {number}", mode)

    def storages(self, placed: Program) -> list[Storage]:
        """Return the storage of the on-chip tensors in `placed`; all must have addresses."""
        if self._placed[0] is not placed:
            addresses, new = placed.addresses, tuple.__new__
            memories = {buffer: buffer.value for buffer in Buffer}
            on_chip = [(number, t) for number, t in self.tensors.items() if t.on_chip]
            storages = [
                new(Storage, (key, memories[t.buffer], *addresses[key], t.partitions, t.bytes))
                for key, t in on_chip
            ]
            self._placed = placed, storages
        return self._placed[1]

    def forget_storages(self) -> None:
        """Free the memoised result of `storages`."""
        self._placed = None, []

    def what(self, cells: Sequence[int], storage: int) -> tuple[str, str]:
        """Return the rule that covers an access, and the name of what is accessed."""
        if storage >= 0:
            return "memory", f"`{self.name(storage)}`"
        name = next(name for name, cell in self.state.items() if cell[0] == cells[0])
        return ("register" if name.startswith("register ") else "state"), name

    def cut(self, areas: Mapping[int, Areas]) -> None:
        """Assign cells to the areas of tensors that are accessed in several ways."""
        for number, boxes in areas.items():
            whole = self.wholes[number]
            grid = Grid({box or whole for box in boxes} if WHOLE in boxes else boxes, self.count)
            for box, cells in boxes.items():
                cells.clear()  # extending an empty list allocates no spare room
                cells.extend(grid.cells(box or whole))
            self.count += grid.count

    def name(self, number: int) -> str:
        """Return the name of the tensor with that number."""
        return self.tensors[number].name if number in self.tensors else self.names[number]


def read(program: Program) -> tuple[Reading, ...]:
    """Return the accesses of every core of a lowered program."""
    return tuple(_Reader(body, program.target).read() for body in program.cores)


def reading_of(body: Body, target: Target, reading: Reading) -> Reading:
    """Return the accesses of `body`: `reading`, unless allocate has moved instructions."""
    return reading if reading.body is body else _Reader(body, target).read()


def axes_of(tensor: Tensor) -> tuple[int, ...]:
    """Return the lengths of a tensor's axes without partitions, the innermost in bytes.

    This is independent of `ir/overlap`, which the stages use, so that no error is shared.
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
        reading = self.reading
        for form, offsets in forms.items():
            if len(forms) == 1 and _are_tiles(tensor, form, offsets):
                for number, cells in enumerate(offsets.values(), reading.count):
                    cells[:] = (number,)
                reading.count += len(offsets)
                return
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
