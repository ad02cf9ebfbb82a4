"""Instructions that are computed together, along rows of HBM.

An instruction that maps tiles which are all pieces of HBM tensors (`storage/in_place.py`) may be
computed at any time: what it reads is there from the start, and nobody looks at what it writes
before the end. Those of one plan whose pieces are neighbours in the rows of each tensor are
computed at once, by one of them, as one instruction on wider pieces: processors read long
rows several times as fast as many short ones. Each instruction still takes its own time, at which
its reads are checked and its writes are noted.
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

MOST = 1 << 20  # elements computed at once
Places = tuple[int, ...]  # the first element of each piece in its tensor


class Item(Protocol):
    """What is needed of an item of a stream (`streams.Item`)."""

    record: InstructionRecord

    def lay(self, work: Work, operands: tuple[OperandRecord, ...]) -> None:
        """It is to do this."""

    def rest(self, step: Step) -> None:
        """It is to do nothing, which `step` does."""


class _Member(NamedTuple):
    """An item, with what it does as a record on pieces, of so many columns each."""

    item: Item
    record: InstructionRecord
    width: int
    places: Places


class Bands:
    """The bands of one stream."""

    def __init__(self, planner: Planner) -> None:
        self.planner = planner
        self.tensors = planner.executable.tensors
        self.pieces = planner.memory.in_place
        self._rows: dict[tuple[object, ...], list[_Member]] = defaultdict(list)

    def offer(self, item: Item, plan: Plan, row: Row) -> None:
        """An item that may be part of a band."""
        if not row.maps or not self.pieces.stored:
            return
        found = self._on_pieces(item.record, plan)
        if found is not None:
            operands, width, key = found
            places = tuple([o.offset for o in operands if type(o) is PatternRecord])
            record = item.record._replace(operands=operands)
            self._rows[key].append(_Member(item, record, width, places))

    def settle(self) -> None:
        """Lets the leftmost item of each band compute all of it."""
        for band in self.bands():
            if len(band) > 1:
                self._join(band)

    def bands(self) -> Iterator[list[_Member]]:
        """Neighbours, from left to right."""
        for members in self._rows.values():
            band: list[_Member] = []
            for member in sorted(members, key=lambda member: member.places):
                if band and not _follows(member, band):
                    yield band
                    band = []
                band.append(member)
            yield band

    def _join(self, band: list[_Member]) -> None:
        first = band[0]
        operands = _widened(first.record.operands, len(band))
        if first.record.row is not None:
            work = self.planner.work(first.record._replace(operands=operands), first.record.row)
            first.item.lay(work, operands)
            for member in band[1:]:
                member.item.rest(_computed)

    def _on_pieces(
        self, record: InstructionRecord, plan: Plan
    ) -> tuple[tuple[OperandRecord, ...], int, tuple[object, ...]] | None:
        """The operands as pieces of HBM tensors, all of one width, and all else that has to be
        equal; None if it reads or writes anything but pieces of inputs and results.
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


def _follows(member: _Member, band: list[_Member]) -> bool:
    """It begins where the band ends, in every tensor, and there is room for it."""
    width, count = member.width, len(band)
    wanted = tuple([place + width * count for place in band[0].places])
    return member.places == wanted and (count + 1) * width * PARTITIONS <= MOST


def _computed() -> None:
    """The leftmost of the band computes it."""


def _widened(operands: tuple[OperandRecord, ...], count: int) -> tuple[OperandRecord, ...]:
    """The operands with pieces so many times as wide."""
    return tuple(
        [
            o._replace(dims=(o.dims[0], (1, o.dims[1][1] * count)))
            if type(o) is PatternRecord
            else o
            for o in operands
        ]
    )
