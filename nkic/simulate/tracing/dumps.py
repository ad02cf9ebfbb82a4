"""Tensors as they are after a line of source has written them, each time that it does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nkic.base.diagnostics import LimitHit, UsageFailed, make
from nkic.base.suggest import did_you_mean
from nkic.base.text import clean, grouped
from nkic.machine.dtypes import DType
from nkic.machine.targets import Target
from nkic.neff.places import users
from nkic.neff.records import Executable, InstructionRecord, PatternRecord, TensorRecord
from nkic.simulate.memory import Memory
from nkic.simulate.streams import Item, Runner
from nkic.simulate.tile import Tile

MAX_BYTES = 1 << 30  # of all that a run dumps


class Tap(NamedTuple):
    """The tensor called `name`, where `line` of a kernel's file writes it."""

    name: str
    line: int


class Dump(NamedTuple):
    """What a tap caught: whole tensors, in the storage type of their element type."""

    dtype: DType
    arrays: list[NDArray[np.generic]]


class Dumps:
    """Those of one rank. Raises `UsageFailed` for a tap that nothing runs into."""

    def __init__(
        self,
        executable: Executable,
        target: Target,
        memory: Memory,
        runners: Sequence[Runner],
        taps: Sequence[Tap],
    ) -> None:
        self.executable = executable
        self.target = target
        self.memory = memory
        self.found: dict[Tap, Dump] = {}
        self.bytes = 0
        self.seen: dict[str, set[int]] = {}  # lines that write a tensor, by its name
        for runner in runners:
            for item in runner.items:
                if isinstance(item, Item) and item.record.row is not None:
                    self._attach(runner, item, taps)
        for tap in taps:
            if tap not in self.found:
                raise self._unknown(tap)

    def _attach(self, runner: Runner, item: Item, taps: Iterable[Tap]) -> None:
        line = self._line(item.record.place)
        for number in self._written(runner, item.record):
            name = self.executable.tensors[number].name
            self.seen.setdefault(name, set()).add(line)
            for tap in taps:
                if tap == (name, line):
                    self._tap(item, number, tap)

    def _written(self, runner: Runner, record: InstructionRecord) -> Iterator[int]:
        row = record.row
        facts = self.executable.facts(record, self.target, runner.record.engine)
        for rule, operand in zip(row.operands if row else (), record.operands, strict=False):
            if row and isinstance(operand, PatternRecord) and row.access_of(rule, facts).writes:
                yield operand.tensor

    def _line(self, place: int) -> int:
        places = self.executable.places
        return places[users(self.executable, place)].line if 0 <= place < len(places) else 0

    def _tap(self, item: Item, number: int, tap: Tap) -> None:
        tensor = self.executable.tensors[number]
        kept = self.found.setdefault(tap, Dump(tensor.dtype, []))
        whole = Tile(self.memory, _whole(number, tensor)).bound() if tensor.buffer.on_chip else None

        def note() -> None:
            found = self.memory.contents_of(number, True) if whole is None else whole.bits()
            self._count(found.nbytes)
            kept.arrays.append(np.array(found).reshape(tensor.shape))

        item.authors = (*item.authors, note)

    def _count(self, size: int) -> None:
        self.bytes += size
        if self.bytes > MAX_BYTES:
            text = f"tensors of more than {grouped(MAX_BYTES)} bytes are dumped"
            help = "dump a tensor that is written less often, or a smaller one"
            raise LimitHit([make("memory-limit", text, help=help)])

    def _unknown(self, tap: Tap) -> UsageFailed:
        text = f"--dump-tensor: line {tap.line} does not write a tensor `{clean(tap.name)}`"
        lines = sorted(self.seen.get(tap.name, ()))
        help = f"it is written in lines {', '.join(map(str, lines))}" if lines else ""
        help = help or did_you_mean(tap.name, self.seen) or f"there are: {', '.join(self.seen)}"
        return UsageFailed([make("bad-value", text, help=help)])


def _whole(number: int, tensor: TensorRecord) -> PatternRecord:
    """All of a tensor on chip."""
    sizes = tensor.shape[1:] or (1,)
    steps = [*accumulate(reversed(sizes[1:]), lambda one, other: one * other, initial=1)][::-1]
    dims = tuple(zip(steps, sizes, strict=True))
    return PatternRecord(number, tensor.dtype, 0, tensor.shape[0], 0, dims)
