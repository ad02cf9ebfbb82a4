"""Run-time offsets: instructions whose patterns depend on registers or on index tiles.

The step works on staged copies of the operands with run-time addresses, in memory that the
instructions of a stream share. At each execution the copies are gathered from the addressed memory,
and results are scattered back. Out-of-bounds rows are skipped if `oob_mode` says so, and are a
fault otherwise.

Sources: `nki.isa.dma_copy` (indirect addressing, out-of-bounds modes), access pattern guide,
`nki.language.NkiTensor.indirect`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from nkic.artifact.records import Executable, InstructionRecord, PatternRecord
from nkic.base.diagnostics import Level, ProgramFault
from nkic.machine.operands import Row
from nkic.machine.patterns import cuts, run
from nkic.machine.rules import History, Rectangle, Write, group, is_matmul
from nkic.machine.targets import Buffer, Engine
from nkic.simulate.in_place import skips_rows
from nkic.simulate.memory import Memory
from nkic.simulate.outcome import Remark, Remarks, fault
from nkic.simulate.plans import Planner, Rendezvous
from nkic.simulate.shadow import Check, Mark, Shadow
from nkic.simulate.tile import Tile

if TYPE_CHECKING:
    from nkic.simulate.streams import Item

# ---- Operands at run-time addresses, as one window over all their possible addresses ------------
# The outermost dimension of the window runs over the offsets that stay inside the tensor. The
# instruction itself works on a staged copy (`Memory.stage`), which is gathered from the window
# before and scattered back after.

Indices = NDArray[np.int64]
MAX_OFFSETS = 1 << 20  # limit for a stride of 0: a file may claim more offsets than NumPy can count


class IndirectOperand(NamedTuple):
    """One operand: `rows` is its window, `copy` the staged tile that the instruction uses."""

    pattern: PatternRecord
    indices: Callable[[], Indices]
    rows: NDArray[Any]
    copy: Tile
    reads: bool
    writes: bool

    @property
    def size(self) -> int:
        """The number of offsets, from 0 on, that stay inside the tensor."""
        return len(self.rows)

    def good(self, indices: Indices) -> NDArray[np.bool_]:
        return (indices >= 0) & (indices < self.size)

    def gather(self, indices: Indices) -> None:
        """Fill the copy from memory. Out-of-bounds offsets are clamped."""
        inside = indices.clip(0, self.size - 1)
        if self.pattern.kind == "scalar":
            np.copyto(self.copy.window, self.rows[inside[0]])
        elif self.pattern.kind == "vector":
            self.copy.window[0] = self.rows[:, 0][inside]
        else:
            self._flat()[...] = self.rows[:, :, 0].T[:, inside]

    def scatter(self, indices: Indices, keep: NDArray[np.bool_]) -> None:
        """Write the copy to memory, for the rows in `keep`; among equal offsets, the last wins."""
        if self.pattern.kind == "scalar":
            np.copyto(self.rows[indices[0]], self.copy.window)
        elif self.pattern.kind == "vector":
            self.rows[:, 0][indices[keep]] = self.copy.window[0][keep]
        else:
            self.rows[:, :, 0].T[:, indices] = self._flat()

    def repeated(self, indices: Indices, keep: NDArray[np.bool_]) -> list[int]:
        """Return the rows in `keep` whose offset an earlier one has, with other elements.

        If rows are added to what is there, equal ones count too.
        """
        if self.pattern.kind == "scalar":
            return []
        places = indices.tolist()
        if len(set(places)) == len(places):
            return []
        is_vector = self.pattern.kind == "vector"
        rows = self.copy.window[0] if is_vector else self._flat().T
        kept = np.broadcast_to(keep, len(places)) if is_vector else np.ones(len(places), np.bool_)
        first: dict[int, int] = {}
        found = []
        for row, place in enumerate(places):
            earlier = first.setdefault(place, row) if kept[row] else row
            if earlier != row and (self.reads or rows[row].tobytes() != rows[earlier].tobytes()):
                found.append(row)
        return found

    def _flat(self) -> NDArray[Any]:
        return self.copy.window.reshape(self.copy.partitions, -1)


def offsets_inside(pattern: PatternRecord, pitch: int) -> int:
    """Return how many offsets, from 0 on, keep `pattern` within `pitch` bytes and its limit."""
    _, _, stride, limit, _ = pattern.dynamic or ("", 0, 0, 1, 0)
    low, high = pattern.extent()
    step = stride * pattern.dtype.size
    if step > 0:
        return min(limit, (pitch - high) // step + 1)
    return min(limit, low // -step + 1 if step < 0 else MAX_OFFSETS)


def window_of(memory: Memory, pattern: PatternRecord) -> NDArray[Any]:
    """Return all possible windows of `pattern`, of shape (offsets, *window)."""
    window = memory.window(pattern.standing)
    stride = pattern.dynamic.stride if pattern.dynamic is not None else 0
    count = offsets_inside(pattern, memory.homes[pattern.tensor].pitch)
    shape, strides = (count, *window.shape), (stride * window.itemsize, *window.strides)
    return as_strided(window, shape, strides, writeable=window.flags.writeable)


def offsets_of(tile: Tile, pattern: PatternRecord, row: Row) -> Callable[[], Indices]:
    """Return a function that reads the offsets that a tile holds, column by column."""
    count = {"scalar": 1, "vector": pattern.dims[0][1] if pattern.dims else 1}.get(
        pattern.kind, pattern.elements // max(1, pattern.partitions)
    )
    lanes = min(tile.partitions, group(row)) if pattern.kind == "columns" else tile.partitions

    def read() -> Indices:
        values = tile.bits().reshape(tile.partitions, -1)[:lanes].T.reshape(-1)[:count]
        return values.astype(np.int64)

    return read


def flag_windows(shadow: Any, pattern: PatternRecord, count: int) -> NDArray[Any]:
    """Return the flags of all possible windows, in the layout of `window_of`."""
    window = shadow.window(pattern.standing)
    flags = shadow.flags[pattern.tensor]
    stride = pattern.dynamic.stride if pattern.dynamic is not None else 0
    step = stride * pattern.dtype.size // flags.columns * window.itemsize
    return as_strided(window, (count, *window.shape), (step, *window.strides))


# ------------------------------------------------------------------------------------------------
# Detection, at run time, of matmuls that accumulate onto data of another instruction in PSUM.
# The compiler reports what the program alone shows (compiler/check_memory.py);
# at run time, device loops and run-time offsets have definite addresses.

SLUG = "accumulates-onto-data"


Shifts = Callable[[], Sequence[int]]


class Written(NamedTuple):
    """A write, and whether it adds to the former contents.

    `shifts` returns, after a run of the instruction, the byte offset of each of its writes.
    """

    pattern: PatternRecord
    adds: bool
    shifts: Shifts


# An item, whether it is a matmul, and one of its writes to PSUM.
_Candidate = tuple["Item", bool, PatternRecord, bool, Shifts]
Fills = tuple[tuple[int, bool], ...]  # operands in PSUM that are written, and whether added to


class PsumWrites:
    """The write histories of one kernel's PSUM tensors.

    Only tensors are tracked to which a matmul adds and another instruction writes; most kernels
    have none.
    """

    def __init__(self, executable: Executable, remarks: Remarks) -> None:
        self.executable, self.remarks = executable, remarks
        self.histories: dict[int, History[tuple[str, int]]] = defaultdict(History)
        self._fixed: list[tuple[Item, Engine, Fills]] = []
        self._candidates: list[_Candidate] = []
        self._accumulated: set[int] = set()
        self._foreign: set[int] = set()

    def offer(self, item: Item, engine: Engine, fills: Fills) -> None:
        """Offer the writes of an item at fixed addresses; most programs have no use for them."""
        self._fixed.append((item, engine, fills))

    def register(
        self,
        item: Item,
        engine: Engine,
        pattern: PatternRecord,
        adds: bool,
        shifts: Shifts = lambda: (0,),
    ) -> None:
        tensor, by_matmul = pattern.tensor, is_matmul(engine)
        if self.executable.tensors[tensor].buffer is not Buffer.PSUM:
            return
        if not by_matmul:
            self._foreign.add(tensor)
        elif adds:
            self._accumulated.add(tensor)
        self._candidates.append((item, by_matmul, pattern, adds, shifts))

    def settle(self) -> None:
        kinds = {(is_matmul(engine), fills) for _, engine, fills in self._fixed}
        adds = any(by_matmul and any(adds for _, adds in fills) for by_matmul, fills in kinds)
        if self._candidates or (adds and not all(by_matmul for by_matmul, _ in kinds)):
            for item, engine, fills in self._fixed:
                for i, adds in fills:
                    pattern: PatternRecord = item.record.operands[i]  # type: ignore[assignment]
                    self.register(item, engine, pattern, adds)
        self._fixed.clear()
        mixed = self._accumulated & self._foreign
        for item, by_matmul, pattern, adds, shifts in self._candidates if mixed else ():
            if pattern.tensor in mixed:
                mark = self._mark(item.record, by_matmul, Written(pattern, adds, shifts))
                item.authors += (mark,) if mark is not None else ()
        self._candidates.clear()

    def _mark(self, record: InstructionRecord, by_matmul: bool, written: Written) -> Mark | None:
        pattern = written.pattern.standing
        low, high = pattern.extent()
        area = Rectangle(pattern.start, pattern.start + pattern.partitions, low, high)
        name = record.row.name if record.row else ""
        writer = None if by_matmul else (name, record.place)
        if writer and run(pattern.dims) * pattern.dtype.size < high - low:
            return None  # with gaps
        adds = written.adds and not writer
        write, history = Write(area, writer), self.histories[pattern.tensor]

        def record_write() -> None:
            for shift in written.shifts():
                if adds:
                    self._check(record, history, write.area.moved(shift), pattern.tensor)
                history.note(write.moved(shift))

        return record_write

    def _check(
        self,
        record: InstructionRecord,
        history: History[tuple[str, int]],
        area: Rectangle,
        tensor: int,
    ) -> None:
        writer = next(iter(history.foreign_writers(area)), None)
        if writer is not None:
            self._add(record, tensor, writer)

    def _add(self, record: InstructionRecord, number: int, writer: tuple[str, int]) -> None:
        (name, place), tensor = writer, self.executable.tensors[number].name
        row = record.row.name if record.row else ""
        text = (
            f"{row} adds to what {name} wrote into `{tensor}`, which is undefined on "
            f"{self.executable.target}: an accumulation must begin with a matmul"
        )
        help = (
            "let the first matmul overwrite, with accumulate=False, and add what was there with "
            "nisa.tensor_tensor afterwards"
        )
        label = f"{name} writes it here"
        self.remarks.add(Remark(SLUG, text, help, 1, Level.WARNING, place, label))


# --------------------------------------------------------------------------------------------------

Mask = NDArray[np.bool_]


def is_dynamic(record: InstructionRecord) -> bool:
    """Return whether an operand has a run-time address: its source follows the row's operands."""
    return record.row is not None and len(record.operands) > len(record.row.operands)


def _advice(row: Row) -> str:
    if row.skips is None:
        return "check the index"
    name, value = row.skips
    return f"check the index, or pass {name}=nisa.{name}.{value} to leave such rows out"


class Dynamic:
    """A prepared instruction with run-time offsets; `watch` returns its checks."""

    def __init__(self, planner: Planner, record: InstructionRecord) -> None:
        row = record.row
        if row is None:
            raise TypeError("an empty slot has no places")
        self.executable, self.record, self.row = planner.executable, record, row
        self.remarks = planner.state.remarks
        self.rendezvous: Rendezvous | None = None
        self.places: list[IndirectOperand] = []
        facts = self.executable.facts(record, planner.decoder.target, planner.engine)
        self._access = [row.access_of(rule, facts) for rule in row.operands]
        self._skips = skips_rows(record)
        self._transposes = row.rows_last
        # DMA writes all of its dst; other engines may leave elements unchanged.
        self._fills = planner.engine is not Engine.DMA
        self._windows = self._decode(planner)
        # the written tiles at fixed addresses, whose skipped rows keep their values
        self._kept = [self._tiles[i] for i, _ in self._written()] if self._skips else []
        self._shadow: Shadow | None = None
        self._flags: list[NDArray[np.bool_]] = []
        self._writers: list[tuple[PatternRecord, Mark]] = []
        self._found: list[Indices] = []
        self._mask = np.ones(1, np.bool_)
        self._before: list[tuple[Tile, NDArray[Any]]] = []

    def _decode(self, planner: Planner) -> list[tuple[Tile, NDArray[Any]]]:
        operands, staged = list(self.record.operands[: len(self.row.operands)]), []
        for number, operand in enumerate(operands):
            if type(operand) is PatternRecord and operand.dynamic is not None:
                operands[number] = planner.memory.stage(operand, (planner, number))
                staged.append(number)
        work = planner.work(self.record._replace(operands=tuple(operands)), self.row)
        self.rendezvous, self._step = work.rendezvous, work.step
        tiles = {operands[number]: tile for number, tile in work.tiles}
        self._tiles = {number: tiles[o] for number, o in enumerate(operands) if o in tiles}
        self.places += [self._place(planner, number, self._tiles[number]) for number in staged]
        return list(work.windows(tuple(operands)))

    def _place(self, planner: Planner, number: int, copy: Tile) -> IndirectOperand:
        pattern: PatternRecord = self.record.operands[number]  # type: ignore[assignment]
        source = self.record.operands[pattern.dynamic.source]  # type: ignore[union-attr]
        access = self._access[number]
        if type(source) is PatternRecord:
            indices = offsets_of(Tile(planner.memory, source).bound(), pattern, self.row)
        else:
            registers, register = planner.state.registers, source.number  # type: ignore[union-attr]

            def indices() -> Indices:
                return np.array([registers[register]], np.int64)

        window = window_of(planner.memory, pattern)
        return IndirectOperand(pattern, indices, window, copy, access.reads, access.writes)

    # ---- execution ----

    def run(self) -> None:
        if self.begin():
            self._step()
            self.end()

    def begin(self) -> bool:
        """Find the addresses and fill the copies; return whether any row remains."""
        self._found = [operand.indices() for operand in self.places]
        self._mask = self._inside()
        if not self._mask.any():
            return False
        for tile, window in self._windows:
            tile.window = window
        for operand, indices in zip(self.places, self._found, strict=True):
            if operand.reads or self._fills:
                operand.gather(indices)
        if not self._mask.all():
            self._before = [(tile, tile.window.copy()) for tile in self._kept]
        return True

    def end(self) -> None:
        for tile, values in self._before:
            out: Mask = ~self._mask
            if not self._transposes:
                out = np.repeat(out, tile.window.size // len(self._mask)).reshape(tile.window.shape)
            np.copyto(tile.window, values, where=out)
        self._before = []
        for operand, indices in zip(self.places, self._found, strict=True):
            if operand.writes:
                self._note_repeated(operand, indices)
                operand.scatter(indices, self._mask)
        if self._shadow is not None:
            self._mark(self._shadow)

    def _note_repeated(self, operand: IndirectOperand, indices: Indices) -> None:
        """Remark on offsets that occur twice, unless equal rows are written there."""
        rows = operand.repeated(indices, self._mask)
        if rows:
            name = self.executable.tensors[operand.pattern.tensor].name
            what = "adds to" if operand.reads else "writes"
            self.remarks.add(
                Remark(
                    "repeated-index",
                    f"{self.row.name} {what} the place of index {int(indices[rows[0]])} of "
                    f"`{name}` again, for row {rows[0]}: which of its values remains is not "
                    "defined",
                    "use different indices within one instruction",
                    len(rows),
                )
            )

    def _inside(self) -> Mask:
        """Return which rows are in bounds; the others are a fault unless they are skipped."""
        mask = np.ones(1, np.bool_)
        for operand, indices in zip(self.places, self._found, strict=True):
            good = operand.good(indices)
            if not self._skips and not good.all():
                raise self._outside(operand, int(indices[~good][0]))
            mask = mask & (good if operand.pattern.kind == "vector" else good.all())
        return mask

    def _outside(self, operand: IndirectOperand, index: int) -> ProgramFault:
        pattern, row = operand.pattern, self.row
        name = self.executable.tensors[pattern.tensor].name
        return fault(
            self.executable,
            "index-outside",
            f"{row.name}: index {index} is outside `{name}`; valid indices are 0 to "
            f"{operand.size - 1}",
            self.record.place,
            pattern.tensor,
            help=_advice(row),
        )

    def written(self) -> Iterator[Written]:
        """Yield the writes. The shifts of an indirect operand are those of the last run."""
        for number, pattern in self._written():
            yield Written(pattern, self._access[number].reads, self._still)
        for number, operand in enumerate(self.places):
            if operand.writes:
                yield Written(operand.pattern, operand.reads, self._shifts(number))

    def _still(self) -> Sequence[int]:
        return (0,) if self._mask.any() else ()

    def _shifts(self, number: int) -> Callable[[], Sequence[int]]:
        pattern = self.places[number].pattern
        step = pattern.dynamic.stride * pattern.dtype.size if pattern.dynamic else 0

        def shifts() -> Sequence[int]:
            indices = self._found[number]
            if not self._mask.any():
                return ()
            selected = indices[self._mask] if pattern.kind == "vector" else indices
            return [int(index) * step for index in selected]

        return shifts

    # ---- skipped rows ----

    def _written(self) -> list[tuple[int, PatternRecord]]:
        """Return the operands at fixed addresses that are written."""
        return [
            (number, operand)
            for number, operand in enumerate(self.record.operands[: len(self._access)])
            if type(operand) is PatternRecord and operand.dynamic is None
            if self._access[number].writes
        ]

    # ---- initialised bytes ----

    def watch(self, shadow: Shadow) -> tuple[tuple[Check, PatternRecord], ...]:
        """Return the checks of reads of uninitialised bytes, and let `run` record its writes."""
        self._shadow = shadow
        self._flags = [flag_windows(shadow, p.pattern, p.size) for p in self.places]
        patterns = [p for _, p in self._written() if shadow.is_noted(p.tensor)]
        self._writers = [(pattern, shadow.writer(pattern)) for pattern in patterns]
        reads = [
            operand
            for number, operand in enumerate(self.record.operands)
            if type(operand) is PatternRecord and operand.dynamic is None
            if number >= len(self._access) or self._access[number].reads
        ]
        places = [
            (_is_initialised(place, window), place.pattern)
            for place, window in zip(self.places, self._flags, strict=True)
            if place.reads and place.pattern.tensor not in shadow.initial
        ]
        return (*shadow.checks(reads), *places)

    def _mark(self, shadow: Shadow) -> None:
        mask = self._mask
        whole = bool(mask.all())
        for pattern, write in self._writers:
            if whole:
                write()
                continue
            for row in np.flatnonzero(mask):
                shadow.writer(self._part(pattern, int(row), len(mask)))()
        for operand, window, indices in zip(self.places, self._flags, self._found, strict=True):
            if operand.writes:
                shadow.move_in(operand.pattern.tensor)
                window[indices[mask] if operand.pattern.kind == "vector" else indices] = True

    def _part(self, pattern: PatternRecord, row: int, rows: int) -> PatternRecord:
        """Return the elements of the other operand that belong to one row."""
        if self._transposes:
            step, _ = pattern.dims[-1]
            dims = (*pattern.dims[:-1], (step, 1))
            return pattern._replace(offset=pattern.offset + row * step, dims=dims)
        if pattern.partitions and pattern.partitions % rows == 0:
            share = pattern.partitions // rows
            return pattern._replace(start=pattern.start + row * share, partitions=share)
        if pattern.partitions:
            share = rows // pattern.partitions
            start = pattern.start + row // share
            return piece(pattern._replace(start=start, partitions=1), row % share, share)
        return piece(pattern, row, rows)


def _is_initialised(operand: IndirectOperand, window: NDArray[np.bool_]) -> Check:
    def check() -> bool:
        indices = operand.indices()
        return bool(window[indices[operand.good(indices)]].all())

    return check


def piece(pattern: PatternRecord, number: int, count: int) -> PatternRecord:
    """Return one of `count` equal pieces of the pattern's elements (in each partition)."""
    offset, dims = pattern.offset, []
    parts = cuts(pattern.dims, count)
    if parts is None:
        raise ValueError(f"{pattern.dims} does not fall into {count} pieces")
    for (step, num), part in zip(pattern.dims, parts, strict=True):
        count //= part
        at, number = divmod(number, count)
        offset += at * (num // part) * step
        dims.append((step, num // part))
    return pattern._replace(offset=offset, dims=tuple(dims))
