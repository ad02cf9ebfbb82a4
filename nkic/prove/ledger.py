"""The last accesses to each cell, and whether a new access is ordered after them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nkic.prove.model import READ
from nkic.prove.run import Core, Start

Touches = Sequence[tuple[Sequence[int], int, int]]  # cells, mode, tensor
NONE: Mapping[int, Start | None] = {}
Formers = Mapping[int, Sequence[int]]


class Ledger:
    """The last accesses to the cells of a core.

    `formers` has the cells of the former owner of a tensor's bytes. Until a cell has been written,
    its accesses must follow those of the former owner; all others follow that write. With
    `in_turn`, a write that follows the reads since the last write need not be compared with that
    write, which they follow or are found not to. Both hold without loops only, after which a stream
    may know less than before (`run`).
    """

    def __init__(
        self, cells: int, core: Core, formers: Formers | None = None, in_turn: bool = False
    ) -> None:
        self.core = core
        self.in_order = [line.in_order for line in core.lines]
        self.formers = formers or {}
        self.in_turn = in_turn
        self.writers: list[Start | None] = [None] * cells
        # The last access of each stream since the write; without a dictionary if there is only one.
        self.readers: list[dict[int, Start] | Start | None] = [None] * cells

    def note(self, start: Start, touches: Touches) -> Mapping[int, Start | None]:
        """Record the accesses of an instruction.

        Return those, by index, that conflict with an earlier access which they do not follow,
        together with that access; None for one to a former owner of the bytes.
        """
        clock, writers, readers, in_turn = start[2], self.writers, self.readers, self.in_turn
        missed = NONE
        for index, (cells, mode, storage) in enumerate(touches):
            for cell in cells:
                last, others = writers[cell], readers[cell]
                if last is None:
                    if storage in self.formers and not self.is_left(storage, start):
                        missed = {**missed, index: None}
                elif (
                    clock[last[0]] < last[1]
                    and (mode == READ or others is None or not in_turn)
                    and not self.follows(start, last)
                ):
                    missed = {**missed, index: last}
                if mode == READ:
                    readers[cell] = start if others is None else _with(others, start)
                    continue
                if others is not None:
                    for last in (others,) if isinstance(others, tuple) else others.values():
                        if clock[last[0]] < last[1] and not self.follows(start, last):
                            missed = {**missed, index: last}
                    readers[cell] = None
                writers[cell] = start
        return missed

    def is_left(self, storage: int, start: Start) -> bool:
        """Return whether `start` follows all accesses of the former owner of a tensor's bytes."""
        for cell in self.formers[storage]:
            others = self.readers[cell] or self.writers[cell]  # which the readers follow
            if others is None:
                continue
            for last in (others,) if isinstance(others, tuple) else others.values():
                if not self.follows(start, last):
                    return False
        return True

    def follows(self, start: Start, last: Start) -> bool:
        """Return whether `last` is certainly complete at `start`, or is the same instruction."""
        line, position, clock, _ = start
        other_line, earlier, _, _ = last
        if start is last or clock[other_line] >= earlier:
            return True
        if line == other_line and self.in_order[line]:
            return earlier <= position
        if self.core.clocks:
            self.core.complete_clocks()
        return clock[other_line] >= earlier


def _with(others: dict[int, Start] | Start, start: Start) -> dict[int, Start]:
    """Add a reader, keeping the last of each stream, which may have reordered reads."""
    readers = {others[0]: others} if isinstance(others, tuple) else others
    line = start[0]
    if line not in readers or readers[line][1] < start[1]:
        readers[line] = start
    return readers
