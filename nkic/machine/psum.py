"""PSUM constraints: banks, and which instruction last wrote the data a matmul accumulates onto.

Sources: Trainium architecture guides (8 banks of 2 KiB per partition; the result of a matmul is
within one bank, before NeuronCore-v4); `nki.isa.nc_matmul`, accumulation mode (accumulating onto
data written by another instruction is undefined before NeuronCore-v4).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, NamedTuple, TypeVar

from nkic.machine.operands import Row
from nkic.machine.targets import PSUM_BANK_BYTES, Engine, Target

MAX_WRITES = 64  # writes remembered per tensor
Writer = TypeVar("Writer")


def banks(first: int, end: int) -> range:
    """Return the banks of bytes `first` to `end` (exclusive) of a partition."""
    return range(first // PSUM_BANK_BYTES, -(-end // PSUM_BANK_BYTES))


def bank_problem(row: Row, name: str, first: int, end: int, target: Target) -> str:
    """Return the error for the PSUM bytes that operand `name` covers, or an empty string."""
    used = banks(first, end)
    one_bank = row.operands[row.operand_index[name]].one_bank
    if not one_bank or target.generation >= 4 or len(used) < 2:
        return ""
    return (
        f"`{name}` covers bytes {first:,} to {end:,} of each partition of PSUM, in banks "
        f"{used[0]} to {used[-1]}; on {target.name} the tensor engine writes within one bank "
        f"of {PSUM_BANK_BYTES:,}"
    )


class Rectangle(NamedTuple):
    """Partitions `top` to `bottom` and, in each, bytes `left` to `right` (ends exclusive)."""

    top: int
    bottom: int
    left: int
    right: int

    def shared(self, other: Rectangle) -> Rectangle | None:
        """Return the intersection, or None if it is empty."""
        top, bottom = max(self.top, other.top), min(self.bottom, other.bottom)
        left, right = max(self.left, other.left), min(self.right, other.right)
        return Rectangle(top, bottom, left, right) if top < bottom and left < right else None

    def without(self, other: Rectangle) -> list[Rectangle]:
        """Return the parts outside of `other`: at most four rectangles."""
        hole = self.shared(other)
        if hole is None:
            return [self]
        top, bottom, left, right = self
        rectangles = (
            Rectangle(top, hole.top, left, right),
            Rectangle(hole.bottom, bottom, left, right),
            Rectangle(hole.top, hole.bottom, left, hole.left),
            Rectangle(hole.top, hole.bottom, hole.right, right),
        )
        return [r for r in rectangles if r.top < r.bottom and r.left < r.right]

    def moved(self, by: int) -> Rectangle:
        """Return this rectangle, moved by `by` bytes."""
        return self._replace(left=self.left + by, right=self.right + by) if by else self


class Write(NamedTuple, Generic[Writer]):
    """A write to a PSUM tensor; `writer` is None for a matmul."""

    area: Rectangle
    writer: Writer | None

    def moved(self, by: int) -> Write[Writer]:
        """Return this write, moved by `by` bytes."""
        return self._replace(area=self.area.moved(by)) if by else self


class History(Generic[Writer]):
    """The latest writer of each part of one PSUM tensor.

    A write with gaps counts as covering its whole area if the tensor engine made it; other writes
    with gaps are not recorded.
    """

    def __init__(self) -> None:
        self.writes: list[Write[Writer]] = []  # latest last

    def note(self, write: Write[Writer]) -> None:
        writes = self.writes
        if len(writes) == 1 and writes[0] == write:
            return
        remaining = [earlier for earlier in writes if earlier.area.without(write.area)]
        self.writes = [*remaining[1 - MAX_WRITES :], write]

    def foreign_writers(self, area: Rectangle) -> Iterable[Writer]:
        """Yield the last writers in `area` other than matmuls, latest first."""
        pieces = [area]
        for write in reversed(self.writes):
            if write.writer is not None and any(write.area.shared(piece) for piece in pieces):
                yield write.writer
            pieces = [remainder for piece in pieces for remainder in piece.without(write.area)]
            if not pieces:
                return

    def foreign_writer_everywhere(self, area: Rectangle) -> Writer | None:
        """Return the latest writer in `area` if none of the area was last written by a matmul.

        None if some part was, or has an unknown writer.
        """
        latest, pieces = None, [area]
        for write in reversed(self.writes):
            if any(write.area.shared(piece) for piece in pieces):
                if write.writer is None:
                    return None
                latest = write.writer if latest is None else latest
                pieces = [remainder for piece in pieces for remainder in piece.without(write.area)]
        return None if pieces else latest


def restricts_accumulation(target: Target) -> bool:
    """Return whether the target restricts which data a matmul may accumulate onto."""
    return target.generation < 4


def is_matmul(engine: Engine | None) -> bool:
    """Return whether writes of `engine` count as matmuls: its transposes do, too."""
    return engine is Engine.TENSOR
