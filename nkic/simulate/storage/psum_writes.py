"""Detection, at run time, of matmuls that accumulate onto data of another instruction in PSUM.

The compiler reports what the program alone shows (check/psum.py); at run time, device loops and
run-time offsets have definite addresses.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from nkic.base.diagnostics import Level
from nkic.machine.engines import Engine
from nkic.machine.memory import Buffer
from nkic.machine.patterns import run
from nkic.machine.psum import History, Rectangle, Write, is_matmul
from nkic.neff.records import Executable, InstructionRecord, PatternRecord
from nkic.simulate.remarks import Remark, Remarks
from nkic.simulate.storage.shadow import Mark

SLUG = "accumulates-onto-data"


Shifts = Callable[[], Sequence[int]]


def _once() -> Sequence[int]:
    """Return the single shift of a pattern at a fixed address."""
    return (0,)


class Written(NamedTuple):
    """A write, and whether it adds to the former contents.

    `shifts` returns, after a run of the instruction, the byte offset of each of its writes.
    """

    pattern: PatternRecord
    adds: bool
    shifts: Shifts


class Author(Protocol):
    """The part of a stream's item (`streams.Item`) that is used here."""

    record: InstructionRecord
    authors: tuple[Mark, ...]


# An item, whether it is a matmul, and one of its writes to PSUM.
_Candidate = tuple[Author, bool, PatternRecord, bool, Shifts]
Fills = tuple[tuple[int, bool], ...]  # operands in PSUM that are written, and whether added to


class PsumWrites:
    """The write histories of one kernel's PSUM tensors.

    Only tensors are tracked to which a matmul adds and another instruction writes; most kernels
    have none.
    """

    def __init__(self, executable: Executable, remarks: Remarks) -> None:
        self.executable = executable
        self.remarks = remarks
        self.histories: dict[int, History[tuple[str, int]]] = defaultdict(History)
        self._fixed: list[tuple[Author, Engine, Fills]] = []
        self._candidates: list[_Candidate] = []
        self._accumulated: set[int] = set()
        self._foreign: set[int] = set()

    def offer(self, item: Author, engine: Engine, fills: Fills) -> None:
        """Offer the writes of an item at fixed addresses; most programs have no use for them."""
        self._fixed.append((item, engine, fills))

    def register(
        self,
        item: Author,
        engine: Engine,
        pattern: PatternRecord,
        adds: bool,
        shifts: Shifts = _once,
    ) -> None:
        """Register a write of an item, as in `Written`; `settle` decides which are tracked."""
        tensor, by_matmul = pattern.tensor, is_matmul(engine)
        if self.executable.tensors[tensor].buffer is not Buffer.PSUM:
            return
        if not by_matmul:
            self._foreign.add(tensor)
        elif adds:
            self._accumulated.add(tensor)
        self._candidates.append((item, by_matmul, pattern, adds, shifts))

    def settle(self) -> None:
        """Attach the recorders of tracked writes to their items."""
        kinds = {(is_matmul(engine), fills) for _, engine, fills in self._fixed}
        adds = any(by_matmul and any(adds for _, adds in fills) for by_matmul, fills in kinds)
        if self._candidates or (adds and not all(by_matmul for by_matmul, _ in kinds)):
            self._register_fixed()
        self._fixed.clear()
        mixed = self._accumulated & self._foreign
        for item, by_matmul, pattern, adds, shifts in self._candidates if mixed else ():
            if pattern.tensor in mixed:
                mark = self._mark(item.record, by_matmul, Written(pattern, adds, shifts))
                item.authors += (mark,) if mark is not None else ()
        self._candidates.clear()

    def _register_fixed(self) -> None:
        for item, engine, fills in self._fixed:
            for i, adds in fills:
                self.register(item, engine, item.record.operands[i], adds)  # type: ignore[arg-type]

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
