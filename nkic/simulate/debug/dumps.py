"""Dumps of tensors after each write by chosen source lines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from nkic.base.diagnostics import LimitHit, make
from nkic.base.text import grouped
from nkic.machine.dtypes import DType
from nkic.simulate.debug.observed import Execution, Observer, Scene
from nkic.simulate.debug.tensors import Stored
from nkic.simulate.debug.writes import Write, Writes

MAX_BYTES = 1 << 30  # limit on all dumps of a run


class Tap(NamedTuple):
    """The tensor called `name`, at its writes by `line` of a kernel's file."""

    name: str
    line: int


class Dump(NamedTuple):
    """A complete tensor after a write, in the storage type of its element type.

    `unwritten` is the number of elements that are uninitialised. `time` counts the writes of a line
    to tensors of one name, from 0, in program order.
    """

    write: Write
    dtype: DType
    array: Stored
    unwritten: int
    time: int = 0


class Dumps(Observer):
    """Dumps the writes that `taps` select.

    With `everything`, dump every write of every tensor or, with `lines`, the writes of the lines
    from the first to the last of them.
    """

    def __init__(
        self,
        taps: Iterable[Tap] = (),
        everything: bool = False,
        lines: tuple[int, int] | None = None,
    ) -> None:
        self.taps = tuple(taps)
        self.everything = everything
        self.lines = lines
        self.bytes = 0
        self.by_rank: list[list[Dump]] = []  # by rank, in order of the writes
        self._writes: list[Writes] = []

    def begin(self, scene: Scene) -> None:
        """Raise `UsageFailed` for a tap without any write."""
        writes = Writes(scene)
        for name, line in self.taps:
            writes.check("--dump", name, line)
        self._writes.append(writes)
        self.by_rank.append([])

    def after(self, execution: Execution) -> None:
        """Dump the selected writes."""
        scene = execution.scene
        for write in self._writes[scene.rank].of(execution):
            if self._is_wanted(write):
                array = scene.tensors.contents(write.tensor)
                self._count(array.nbytes)
                missing = int((~scene.tensors.written(write.tensor)).sum())
                dtype = scene.tensors.record(write.tensor).dtype
                self.by_rank[scene.rank].append(Dump(write, dtype, array, missing))

    def end(self) -> None:
        """Number the writes of each line."""
        for dumps in self.by_rank:
            groups: dict[tuple[str, int], list[int]] = defaultdict(list)
            for number, dump in enumerate(dumps):
                groups[dump.write.name, dump.write.line].append(number)
            for group in groups.values():
                ordered = sorted(group, key=lambda number: dumps[number].write.key)
                for time, number in enumerate(ordered):
                    dumps[number] = dumps[number]._replace(time=time)

    def chosen(self, rank: int) -> list[Dump]:
        """Return the dumps that were selected without a tap."""
        return [dump for dump in self.by_rank[rank] if self._is_chosen(dump.write)]

    def of(self, rank: int, tap: Tap) -> list[Dump]:
        """Return the dumps of a tap, in program order."""
        dumps = [dump for dump in self.by_rank[rank] if (dump.write.name, dump.write.line) == tap]
        return sorted(dumps, key=lambda dump: dump.time)

    def _is_wanted(self, write: Write) -> bool:
        return self._is_chosen(write) or (write.name, write.line) in self.taps

    def _is_chosen(self, write: Write) -> bool:
        low, high = self.lines or (write.line, write.line)
        return self.everything and low <= write.line <= high

    def _count(self, size: int) -> None:
        self.bytes += size
        if self.bytes > MAX_BYTES:
            text = f"the dumped tensors exceed {grouped(MAX_BYTES)} bytes"
            help = "dump one tensor with --dump NAME@LINE=FILE, or the writes of fewer lines"
            raise LimitHit([make("memory-limit", text, help=help)])
