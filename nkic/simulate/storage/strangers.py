"""Matmuls that add to what another instruction wrote into PSUM, found while they run.

What the program alone shows is the compiler's (check/psum.py); here loops turn, and patterns and
run-time offsets have their addresses.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from nkic.base.diagnostics import Level
from nkic.machine.engines import Engine
from nkic.machine.memory import Buffer
from nkic.machine.patterns import run
from nkic.machine.psum import History, Rectangle, Write, is_matmul
from nkic.neff.records import Executable, InstructionRecord, PatternRecord
from nkic.simulate.remarks import Remark, Remarks
from nkic.simulate.storage.shadow import Mark

STRANGER = "accumulates-onto-data"


def _once() -> Sequence[int]:
    """A pattern with a fixed place is written where it stands."""
    return (0,)


class Written(NamedTuple):
    """What an instruction writes, and whether it adds to what was there.

    `shifts` gives, after a run of it, how many bytes further on each of its writes was.
    """

    pattern: PatternRecord
    adds: bool
    shifts: Callable[[], Sequence[int]] = _once


class Strangers:
    """The histories of one kernel's PSUM tensors."""

    def __init__(self, executable: Executable, remarks: Remarks) -> None:
        self.executable = executable
        self.remarks = remarks
        self.histories: dict[int, History[tuple[str, int]]] = defaultdict(History)

    def marks(
        self, record: InstructionRecord, engine: Engine, writes: Sequence[Written]
    ) -> tuple[Mark, ...]:
        """What to do after the instruction, which writes all this."""
        tensors = self.executable.tensors
        found = [one for one in writes if tensors[one.pattern.tensor].buffer is Buffer.PSUM]
        marks = [self._mark(record, engine, one) for one in found]
        return tuple([mark for mark in marks if mark is not None])

    def _mark(self, record: InstructionRecord, engine: Engine, written: Written) -> Mark | None:
        pattern = written.pattern.standing
        low, high = pattern.extent()
        area = Rectangle(pattern.start, pattern.start + pattern.partitions, low, high)
        name = record.row.name if record.row else ""
        stranger = None if is_matmul(engine) else (name, record.place)
        if stranger and run(pattern.dims) * pattern.dtype.size < high - low:
            return None  # with gaps
        adds = written.adds and not stranger
        own, history = Write(area, stranger), self.histories[pattern.tensor]

        def follow() -> None:
            for shift in written.shifts():
                if adds:
                    self._judge(record, history, own.area.moved(shift), pattern.tensor)
                history.note(own.moved(shift))

        return follow

    def _judge(
        self,
        record: InstructionRecord,
        history: History[tuple[str, int]],
        area: Rectangle,
        tensor: int,
    ) -> None:
        stranger = next(iter(history.strangers(area)), None)
        if stranger is not None:
            self._add(record, tensor, stranger)

    def _add(self, record: InstructionRecord, number: int, stranger: tuple[str, int]) -> None:
        (name, place), tensor = stranger, self.executable.tensors[number].name
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
        self.remarks.add(Remark(STRANGER, text, help, 1, Level.WARNING, place, label))
