"""Run-time offsets: instructions whose patterns depend on registers or on index tiles.

The step works on staged copies of the operands with run-time addresses, in memory that the
instructions of a stream share. At each execution the copies are gathered from the addressed memory,
and results are scattered back. Out-of-bounds rows are skipped if `oob_mode` says so, and are a
fault otherwise.

Sources: `nki.isa.dma_copy` (indirect addressing, out-of-bounds modes), access pattern guide,
`nki.language.NkiTensor.indirect`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nkic.base.diagnostics import ProgramFault
from nkic.machine.engines import Engine
from nkic.machine.operands import Row
from nkic.machine.patterns import cuts
from nkic.neff.records import Executable, InstructionRecord, PatternRecord
from nkic.simulate.decode import EngineState, Rendezvous
from nkic.simulate.faults import fault
from nkic.simulate.indirect_operands import (
    Indices,
    IndirectOperand,
    flag_windows,
    offsets_of,
    window_of,
)
from nkic.simulate.plans import Planner
from nkic.simulate.remarks import Remark
from nkic.simulate.storage.flags import Check
from nkic.simulate.storage.psum_writes import Written
from nkic.simulate.storage.shadow import Mark, Shadow
from nkic.simulate.storage.tensor_usage import skips_rows
from nkic.simulate.tile import Tile

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

    def __init__(self, executable: Executable, planner: Planner, record: InstructionRecord) -> None:
        row = record.row
        if row is None:
            raise TypeError("an empty slot has no places")
        self.executable = executable
        self.record = record
        self.row = row
        self.remarks = planner.state.remarks
        self.rendezvous: Rendezvous | None = None
        self.places: list[IndirectOperand] = []
        facts = executable.facts(record, planner.target, planner.engine)
        self._access = [row.access_of(rule, facts) for rule in row.operands]
        self._skips = skips_rows(record)
        self._transposes = row.rows_last
        # DMA writes all of its dst; other engines may leave elements unchanged.
        self._fills = planner.engine is not Engine.DMA
        self._windows = self._decode(planner)
        self._kept = self._preserved()
        self._shadow: Shadow | None = None
        self._flags: list[NDArray[np.bool_]] = []
        self._writers: list[tuple[PatternRecord, Mark]] = []
        self._found: list[Indices] = []
        self._mask = np.ones(1, np.bool_)
        self._before: list[tuple[Tile, NDArray[Any]]] = []

    def _decode(self, planner: Planner) -> list[tuple[Tile, NDArray[Any]]]:
        """Decode the step over staged copies, and return its tiles with their memory."""
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
            indices = _register_reader(planner.state, source.number)  # type: ignore[union-attr]
        window = window_of(planner.memory, pattern)
        return IndirectOperand(pattern, indices, window, copy, access.reads, access.writes)

    # ---- execution ----

    def run(self) -> None:
        """Execute the instruction at its current addresses."""
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
        """Scatter the results."""
        for tile, values in self._before:
            self._restore(tile, values, self._mask)
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

    def _preserved(self) -> list[Tile]:
        """Return the written tiles at fixed addresses, whose skipped rows keep their values."""
        return [self._tiles[number] for number, _ in self._written()] if self._skips else []

    def _restore(self, tile: Tile, before: NDArray[Any], mask: Mask) -> None:
        out = ~mask
        if not self._transposes:
            out = np.repeat(out, tile.window.size // len(mask)).reshape(tile.window.shape)
        np.copyto(tile.window, before, where=out)

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
        """Mark the written bytes as initialised."""
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


def _register_reader(state: EngineState, register: int) -> Callable[[], Indices]:
    return lambda: np.array([state.registers[register]], np.int64)


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
