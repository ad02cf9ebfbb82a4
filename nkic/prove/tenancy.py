"""The owner of each byte of SBUF and PSUM.

A tensor that takes over bytes must wait for all accesses of their former owner.
"""

from __future__ import annotations

from collections.abc import Sequence

from nkic.prove.boxes import bands
from nkic.prove.ledger import Ledger, Touches
from nkic.prove.model import Storage
from nkic.prove.run import Start

Segment = int  # a piece of the bytes of a band of partitions, numbered over both memories


class Tenant:
    """A tensor, its last access in each stream, and the accesses that it must wait for."""

    __slots__ = ("needed", "resident", "segments", "tensor", "touched")

    def __init__(self, tensor: int, segments: Sequence[Segment]) -> None:
        self.tensor = tensor
        self.segments = segments
        self.resident = False
        self.touched: list[Start] = []
        self.needed: tuple[Start, ...] = ()


class Tenancy:
    """The owners of all bytes. `hands` tells whether any byte changes hands."""

    def __init__(self, storages: Sequence[Storage], ledger: Ledger) -> None:
        self.follows = ledger.follows
        segments = _segments(storages)
        total = sum(map(len, segments.values()))
        self.hands = total > len({piece for pieces in segments.values() for piece in pieces})
        self.tenants = {tensor: Tenant(tensor, pieces_of) for tensor, pieces_of in segments.items()}
        self.owner: dict[Segment, Tenant] = {}
        self.former: dict[int, int] = {}  # by tensor

    def note(self, start: Start, touches: Touches) -> Sequence[int]:
        """Record the accesses of an instruction.

        Return those, by index, to bytes that a former owner may still use.
        """
        late: Sequence[int] = ()
        tenants, clock = self.tenants, start[2]
        for index, (_, _, storage) in enumerate(touches):
            tenant = tenants.get(storage)
            if tenant is None:  # in HBM, or state
                continue
            if not tenant.resident:
                self._move_in(tenant)
            touched = tenant.touched
            if not touched or touched[-1] is not start:
                _touch(touched, start)
            for last in tenant.needed:
                if clock[last[0]] < last[1] and not self.follows(start, last):
                    late = (*late, index)
                    break
        return late

    def _move_in(self, tenant: Tenant) -> None:
        """Give a tensor its bytes.

        Its former waits still count, since another tensor has owned the bytes since.
        """
        needed = {last[0]: last for last in tenant.needed}
        owners, formers = self.owner, {tenant}
        for segment in tenant.segments:
            owner = owners.get(segment, tenant)
            owners[segment] = tenant
            if owner not in formers:
                formers.add(owner)
                _inherit(owner, needed)
                self.former[tenant.tensor] = owner.tensor
        tenant.resident = True
        tenant.needed = tuple(needed.values())


def _touch(touched: list[Start], start: Start) -> None:
    """Keep the last access of each stream."""
    for at, before in enumerate(touched):
        if before[0] == start[0]:
            if before[1] < start[1]:  # a stream may have reordered reads
                touched[at] = start
            return
    touched.append(start)


def _inherit(owner: Tenant, needed: dict[int, Start]) -> None:
    """Add the last access of a former owner in each stream."""
    owner.resident = False
    for last in owner.touched:
        line = last[0]
        if line not in needed or needed[line][1] < last[1]:
            needed[line] = last


def _segments(storages: Sequence[Storage]) -> dict[int, Sequence[Segment]]:
    """Return each tensor's bytes, cut at the ends of all tensors, in each band that it covers."""
    starts = sorted({storage.partition for storage in storages})
    sides: dict[str, set[int]] = {storage.memory: set() for storage in storages}
    for _, memory, _, byte, _, size in storages:
        sides[memory].add(byte)
        sides[memory].add(byte + size)
    index, count = {}, 0
    for memory, cuts in sides.items():
        index[memory] = {byte: at for at, byte in enumerate(sorted(cuts), count)}
        count += len(cuts)
    segments: dict[int, Sequence[Segment]] = {}
    for key, memory, partition, byte, partitions, size in storages:
        offsets = index[memory]
        first, end = offsets[byte], offsets[byte + size]
        if len(starts) == 1:
            segments[key] = range(first, end)
            continue
        rows = bands(starts, partition, partitions)
        segments[key] = [row * count + piece for row in rows for piece in range(first, end)]
    return segments
