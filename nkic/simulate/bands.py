"""Fusion of neighbouring instructions along rows of HBM.

An elementwise instruction whose tiles are all pieces of HBM tensors (`storage/in_place.py`) may be
computed at any time: its inputs are there from the start, and its results are not observed before
the end. Instructions of one plan whose pieces are neighbours in the rows of every tensor form a
band: one of them computes all, as one instruction on wider pieces, since processors read long rows
several times as fast as many short ones. Each instruction still takes its own simulated time, at
which its reads are checked and its writes are recorded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from math import prod
from typing import NamedTuple, Protocol

from nkic.machine.memory import PARTITIONS
from nkic.neff.records import InstructionRecord, OperandRecord, PatternRecord
from nkic.simulate.decode import Step
from nkic.simulate.plans import Plan, Planner, Work
from nkic.simulate.storage.in_place import Piece, is_whole

MAX_ELEMENTS = 1 << 20  # elements of a band
Offsets = tuple[int, ...]  # the offset of each piece in its tensor


class Item(Protocol):
    """The part of a stream's item (`streams.Item`) that is used here."""

    record: InstructionRecord

    def bind(self, work: Work, operands: tuple[OperandRecord, ...]) -> None:
        """Bind the item to `work` over these operands."""

    def bind_idle(self, step: Step) -> None:
        """Bind the item to `step`, which does nothing."""


class _Member(NamedTuple):
    """An item, the width of its pieces in columns, and their offsets."""

    item: Item
    width: int
    offsets: Offsets


class Bands:
    """The bands of one stream."""

    def __init__(self, planner: Planner) -> None:
        self.planner = planner
        self.tensors = planner.executable.tensors
        self.pieces = planner.memory.in_place
        self._rows: dict[tuple[object, ...], list[_Member]] = defaultdict(list)

    def offer(self, item: Item, plan: Plan) -> None:
        """Add an elementwise item that may be part of a band: all of its tiles are pieces of
        inputs and results, of the same shape.
        """
        if not self.pieces.stored or not plan.writes:
            return
        record, offsets, width = item.record, [], 0
        key: list[object] = [plan.work.step]
        for number, operand in enumerate(record.operands):
            if type(operand) is not PatternRecord:
                continue
            piece, partitions = self._piece(operand, number in plan.writes), operand.partitions
            if piece is None:
                return
            pattern, pitch = piece
            size = prod([num for _, num in operand.dims])
            if size > pitch or (width and (partitions, size) != key[1]):
                return
            if not width:
                width = size
                key.append((partitions, size))
            offsets.append(pattern.offset)
            key.append((pattern.tensor, pitch, pattern.offset // pitch))
        if width:
            self._rows[tuple(key)].append(_Member(item, width, tuple(offsets)))

    def _piece(self, operand: PatternRecord, is_written: bool) -> Piece | None:
        """Return the piece that an operand covers, or None."""
        pieces = self.pieces.stored if is_written else self.pieces.loaded
        piece = pieces.get(operand.tensor)
        is_piece = piece is not None and is_whole(operand, self.tensors[operand.tensor].shape)
        return piece if is_piece else None

    def settle(self) -> None:
        """Let the leftmost item of each band compute the whole band."""
        for band in self.bands():
            if len(band) > 1:
                self._join(band)

    def bands(self) -> Iterator[list[_Member]]:
        """Yield runs of neighbouring items, from left to right."""
        for members in self._rows.values():
            band: list[_Member] = []
            for member in sorted(members, key=lambda member: member.offsets):
                if band and not _extends(member, band):
                    yield band
                    band = []
                band.append(member)
            yield band

    def _join(self, band: list[_Member]) -> None:
        first, record = band[0], band[0].item.record
        operands = tuple([self._widened(o, first.width * len(band)) for o in record.operands])
        if record.row is not None:
            work = self.planner.work(record._replace(operands=operands), record.row)
            first.item.bind(work, operands)
            for member in band[1:]:
                member.item.bind_idle(_nothing)

    def _widened(self, operand: OperandRecord, width: int) -> OperandRecord:
        """Return an operand as a piece of its HBM tensor, with `width` columns."""
        piece = self.pieces.get(operand.tensor) if type(operand) is PatternRecord else None
        if type(operand) is not PatternRecord or piece is None:
            return operand
        return piece.pattern._replace(dims=((piece.pitch, operand.partitions), (1, width)))


def _extends(member: _Member, band: list[_Member]) -> bool:
    """Return whether `member` starts where the band ends in every tensor, and fits."""
    width, count = member.width, len(band)
    expected = tuple([offset + width * count for offset in band[0].offsets])
    return member.offsets == expected and (count + 1) * width * PARTITIONS <= MAX_ELEMENTS


def _nothing() -> None:
    """Do nothing: the leftmost item of the band computes this one."""
