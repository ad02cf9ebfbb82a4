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
from nkic.machine.operands import Row
from nkic.neff.records import InstructionRecord, OperandRecord, PatternRecord
from nkic.simulate.decode import Step
from nkic.simulate.plans import Plan, Planner, Work
from nkic.simulate.storage.in_place import is_whole

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
    """An item, its record with pieces as operands, and the width of the pieces in columns."""

    item: Item
    record: InstructionRecord
    width: int
    offsets: Offsets


class Bands:
    """The bands of one stream."""

    def __init__(self, planner: Planner) -> None:
        self.planner = planner
        self.tensors = planner.executable.tensors
        self.pieces = planner.memory.in_place
        self._rows: dict[tuple[object, ...], list[_Member]] = defaultdict(list)

    def offer(self, item: Item, plan: Plan, row: Row) -> None:
        """Add an item that may be part of a band."""
        if not row.maps or not self.pieces.stored:
            return
        candidate = self._on_pieces(item.record, plan)
        if candidate is not None:
            operands, width, key = candidate
            offsets = tuple([o.offset for o in operands if type(o) is PatternRecord])
            record = item.record._replace(operands=operands)
            self._rows[key].append(_Member(item, record, width, offsets))

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
        first = band[0]
        operands = _widened(first.record.operands, len(band))
        if first.record.row is not None:
            work = self.planner.work(first.record._replace(operands=operands), first.record.row)
            first.item.bind(work, operands)
            for member in band[1:]:
                member.item.bind_idle(_nothing)

    def _on_pieces(
        self, record: InstructionRecord, plan: Plan
    ) -> tuple[tuple[OperandRecord, ...], int, tuple[object, ...]] | None:
        """Return the operands as pieces of HBM tensors, their common width, and a grouping key.

        Return None if the item reads or writes anything but pieces of inputs and results.
        """
        operands: list[OperandRecord] = []
        shapes = set()
        key: list[object] = [plan.work.step]
        for number, operand in enumerate(record.operands):
            if type(operand) is not PatternRecord:
                operands.append(operand)
                continue
            pieces = self.pieces.stored if number in plan.writes else self.pieces.loaded
            piece, shape = pieces.get(operand.tensor), self.tensors[operand.tensor].shape
            if piece is None or not is_whole(operand, shape):
                return None
            width = prod(shape[1:])
            operands.append(piece.pattern._replace(dims=((piece.pitch, shape[0]), (1, width))))
            shapes.add((shape[0], width, piece.pitch - width >= 0))
            key.append((piece.pattern.tensor, piece.pitch, piece.pattern.offset // piece.pitch))
        if len(shapes) != 1 or not plan.writes:
            return None
        (_, width, has_room) = shapes.pop()
        return (tuple(operands), width, tuple(key)) if has_room else None


def _extends(member: _Member, band: list[_Member]) -> bool:
    """Return whether `member` starts where the band ends in every tensor, and fits."""
    width, count = member.width, len(band)
    expected = tuple([offset + width * count for offset in band[0].offsets])
    return member.offsets == expected and (count + 1) * width * PARTITIONS <= MAX_ELEMENTS


def _nothing() -> None:
    """Do nothing: the leftmost item of the band computes this one."""


def _widened(operands: tuple[OperandRecord, ...], count: int) -> tuple[OperandRecord, ...]:
    """Return the operands with pieces `count` times as wide."""
    return tuple(
        [
            operand._replace(dims=(operand.dims[0], (1, operand.dims[1][1] * count)))
            if type(operand) is PatternRecord
            else operand
            for operand in operands
        ]
    )
