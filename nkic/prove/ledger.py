"""Who touched each cell last: are conflicting accesses ordered, in the order in which they are
told?
"""

from __future__ import annotations

from collections.abc import Sequence

from nkic.prove.model import Line
from nkic.prove.run import Start


class Ledger:
    """The last accesses to the cells of one core. `lines` are its streams."""

    def __init__(self, cells: int, lines: Sequence[Line]) -> None:
        self.in_order = [line.in_order for line in lines]
        self.writers: list[Start | None] = [None] * cells
        # The last access of each stream since; not in a dictionary where there is but one.
        self.readers: list[dict[int, Start] | Start | None] = [None] * cells

    def read(self, start: Start, cells: Sequence[int]) -> Start | None:
        """Notes an access that leaves the cells as they are; an earlier one that conflicts with it
        and that it does not follow.
        """
        line, position, known, _ = start
        writers, readers, missed = self.writers, self.readers, None
        for cell in cells:
            last = writers[cell]
            if last is not None and known[last[0]] < last[1] and not self.follows(start, last):
                missed = last
            others = readers[cell]
            if others is None:
                readers[cell] = start
                continue
            if isinstance(others, tuple):
                others = readers[cell] = {others[0]: others}
            if line not in others or others[line][1] < position:
                others[line] = start  # a stream may have turned reads round
        return missed

    def write(self, start: Start, cells: Sequence[int]) -> Start | None:
        """As `read`, for an access that may change the cells."""
        known = start[2]
        writers, readers, missed = self.writers, self.readers, None
        for cell in cells:
            last = writers[cell]
            if last is not None and known[last[0]] < last[1] and not self.follows(start, last):
                missed = last
            others = readers[cell]
            if others is not None:
                for last in (others,) if isinstance(others, tuple) else others.values():
                    if known[last[0]] < last[1] and not self.follows(start, last):
                        missed = last
                readers[cell] = None
            writers[cell] = start
        return missed

    def follows(self, start: Start, last: Start) -> bool:
        """Whether `last` is surely complete when `start` happens, or is the same instruction."""
        line, position, known, _ = start
        other, earlier, _, _ = last
        if start is last or known[other] >= earlier:
            return True
        return line == other and self.in_order[line] and earlier <= position
