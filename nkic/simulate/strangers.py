"""Matmuls that add to what another instruction wrote into PSUM, found while they run.

What the program alone shows is the compiler's (check/psum.py); here loops turn and patterns have
their addresses. Writes whose place is known at run time only are not followed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from nkic.base.diagnostics import Level
from nkic.machine.engines import Engine
from nkic.machine.memory import Buffer
from nkic.machine.patterns import run
from nkic.machine.psum import History, Rectangle, Write, is_matmul
from nkic.neff.records import Executable, InstructionRecord, PatternRecord
from nkic.simulate.remarks import Remark, Remarks
from nkic.simulate.shadow import Mark


class Strangers:
    """The histories of one kernel's PSUM tensors."""

    def __init__(self, executable: Executable, remarks: Remarks) -> None:
        self.executable = executable
        self.remarks = remarks
        self.histories: dict[int, History[tuple[str, int]]] = defaultdict(History)

    def marks(
        self,
        record: InstructionRecord,
        engine: Engine,
        reads: Sequence[PatternRecord],
        writes: Sequence[PatternRecord],
    ) -> tuple[Mark, ...]:
        """What to do after the instruction, which writes these patterns."""
        found = [p for p in writes if self.executable.tensors[p.tensor].buffer is Buffer.PSUM]
        return tuple(
            [mark for p in found if (mark := self._mark(record, engine, p in reads, p)) is not None]
        )

    def _mark(
        self, record: InstructionRecord, engine: Engine, adds: bool, pattern: PatternRecord
    ) -> Mark | None:
        low, high = pattern.extent()
        area = Rectangle(pattern.start, pattern.start + pattern.partitions, low, high)
        history = self.histories[pattern.tensor]
        if not is_matmul(engine):
            if run(pattern.dims) * pattern.dtype.size < high - low:
                return None  # with gaps
            own = Write(area, (record.row.name if record.row else "", record.place))
            return lambda: history.note(own)
        written: Write[tuple[str, int]] = Write(area, None)
        if not adds:
            return lambda: history.note(written)

        def adding() -> None:
            stranger = next(iter(history.strangers(area)), None)
            if stranger is not None:
                self._add(record, pattern, stranger)
            history.note(written)

        return adding

    def _add(
        self, record: InstructionRecord, pattern: PatternRecord, stranger: tuple[str, int]
    ) -> None:
        (name, place), tensor = stranger, self.executable.tensors[pattern.tensor].name
        row = record.row.name if record.row else ""
        text = (
            f"{row} adds to what {name} wrote into `{tensor}`, which is undefined on "
            f"{self.executable.target}: there only a matmul may begin what matmuls add to"
        )
        help = (
            "let the first matmul overwrite, with accumulate=False, and add what was there with "
            "nisa.tensor_tensor afterwards"
        )
        label = f"{name} writes it here"
        self.remarks.add(
            Remark("accumulates-onto-data", text, help, 1, Level.WARNING, place, label)
        )
