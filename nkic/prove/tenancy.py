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


class Tenant:
    """A tensor: who touched it last in each stream, and whom it must wait for in its bytes."""

    __slots__ = ("needed", "resident", "segments", "tensor", "touched")

    def __init__(self, tensor: int, segments: Sequence[Segment]) -> None:
        self.tensor = tensor
        self.segments = segments
        self.resident = False
        self.touched: list[Start] = []
        self.needed: tuple[Start, ...] = ()


class Tenancy:
    """The owners of all bytes. `hands` tells whether any byte changes hands at all."""

    def __init__(self, storages: Sequence[Storage], ledger: Ledger) -> None:
        self.follows = ledger.follows
        segments = _segments(storages)
        total = sum(map(len, segments.values()))
        self.hands = total > len({one for found in segments.values() for one in found})
        self.tenants = {tensor: Tenant(tensor, own) for tensor, own in segments.items()}
        self.owner: dict[Segment, Tenant] = {}
        self.former: dict[int, int] = {}  # by tensor

    def access(self, start: Start, tensor: int) -> bool:
        """Notes an access to `tensor`; whether a former owner may still use its bytes."""
        tenant = self.tenants.get(tensor)
        if tenant is None:  # in HBM, or state
            return False
        if not tenant.resident:
            self._move_in(tenant)
        line, position, known, _ = start
        for at, before in enumerate(tenant.touched):
            if before[0] == line:
                if before[1] < position:  # a stream may have turned reads round
                    tenant.touched[at] = start
                break
        else:
            tenant.touched.append(start)
        late = False
        for last in tenant.needed:
            if known[last[0]] < last[1] and not self.follows(start, last):
                late = True
        return late

    def _move_in(self, tenant: Tenant) -> None:
        """Gives a tensor its bytes. What it waited for in them before counts still: another has
        had them since.
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


def _inherit(owner: Tenant, needed: dict[int, Start]) -> None:
    """Adds what a former owner did last in each stream."""
    owner.resident = False
    for last in owner.touched:
        line = last[0]
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
