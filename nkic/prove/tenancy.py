"""Which tensor has each byte of SBUF and PSUM: one that takes over bytes must wait for everything
that their former owner did.
"""

from __future__ import annotations

from collections.abc import Sequence

from nkic.prove.boxes import bands
from nkic.prove.ledger import Ledger
from nkic.prove.model import Storage
from nkic.prove.run import Start

Segment = int  # a piece of the bytes of a band of partitions, numbered over all of both memories


class Tenancy:
    """The owners of all bytes. `hands` tells whether any byte changes hands at all."""

    def __init__(self, storages: Sequence[Storage], ledger: Ledger) -> None:
        self.ledger = ledger
        self.segments = _segments(storages)
        total = sum(map(len, self.segments.values()))
        self.hands = total > len({one for found in self.segments.values() for one in found})
        self.owner: dict[Segment, int] = {}
        self.resident: set[int] = set()
        self.touched: dict[int, dict[int, Start]] = {one.key: {} for one in storages}
        self.needed: dict[int, tuple[Start, ...]] = {}  # by tensor
        self.former: dict[int, int] = {}

    def access(self, start: Start, tensor: int) -> bool:
        """Notes an access to `tensor`; whether a former owner may still use its bytes."""
        touched = self.touched.get(tensor)
        if touched is None:  # in HBM, or state
            return False
        if tensor not in self.resident:
            self._move_in(tensor)
        late, known = False, start[2]
        for last in self.needed[tensor]:
            if known[last[0]] < last[1] and not self.ledger.follows(start, last):
                late = True
        touched[start[0]] = start
        return late

    def _move_in(self, tensor: int) -> None:
        """Gives `tensor` its bytes. What it waited for in them before counts still: another has
        had them since.
        """
        needed = {last[0]: last for last in self.needed.get(tensor, ())}
        owner_of, formers = self.owner, {tensor}
        for segment in self.segments[tensor]:
            owner = owner_of.get(segment, tensor)
            owner_of[segment] = tensor
            if owner not in formers:
                formers.add(owner)
                self._inherit(owner, needed)
                self.former[tensor] = owner
        self.resident.add(tensor)
        self.needed[tensor] = tuple(needed.values())

    def _inherit(self, owner: int, needed: dict[int, Start]) -> None:
        """Adds what a former owner did last in each stream."""
        self.resident.discard(owner)
        for line, last in self.touched[owner].items():
            if line not in needed or needed[line][1] < last[1]:
                needed[line] = last


def _segments(storages: Sequence[Storage]) -> dict[int, Sequence[Segment]]:
    """Each tensor's bytes, cut at the ends of all tensors, in each band that it covers."""
    starts = sorted({one.partition for one in storages})
    sides: dict[str, set[int]] = {one.memory: set() for one in storages}
    for _, memory, _, byte, _, size in storages:
        sides[memory].add(byte)
        sides[memory].add(byte + size)
    index, count = {}, 0
    for memory, cuts in sides.items():
        index[memory] = {byte: at for at, byte in enumerate(sorted(cuts), count)}
        count += len(cuts)
    found: dict[int, Sequence[Segment]] = {}
    for key, memory, partition, byte, partitions, size in storages:
        known = index[memory]
        pieces = range(known[byte], known[byte + size])
        rows = bands(starts, partition, partitions)
        if len(rows) == 1:
            found[key] = range(pieces.start + rows[0] * count, pieces.stop + rows[0] * count)
        else:
            found[key] = [row * count + piece for row in rows for piece in pieces]
    return found
