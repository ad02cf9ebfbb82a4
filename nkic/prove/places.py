"""The places of tensors on chip: the bytes that they get, which tensors may get in turn.

Most places share no byte with another one. There each tensor has one former owner, the tensor that
used the place before; the bytes of the others are followed one by one (`tenancy`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from nkic.ir.tensors import Tensor
from nkic.machine.memory import Address, Buffer
from nkic.prove.boxes import bands
from nkic.prove.model import Storage

Place = tuple[str, int, int, int, int]  # the fields of `Storage` after `key`


class Places:
    """The places of `tensors`; `unplaced` are those without an address."""

    def __init__(self, tensors: Mapping[int, Tensor], addresses: Mapping[int, Address]) -> None:
        self.tenants: dict[Place, list[int]] = {}  # in the order of `tensors`
        self.unplaced: list[int] = []
        sbuf, psum = Buffer.SBUF.value, Buffer.PSUM.value
        for number, tensor in tensors.items():
            if not tensor.on_chip:
                continue
            address = addresses.get(number)
            if address is None:
                self.unplaced.append(number)
                continue
            memory = psum if tensor.buffer is Buffer.PSUM else sbuf
            place = (memory, *address, tensor.partitions, tensor.bytes)
            tenants = self.tenants.get(place)
            if tenants is None:
                self.tenants[place] = [number]
            else:
                tenants.append(number)
        self.shared = set(chain(_shared(self.tenants, sbuf), _shared(self.tenants, psum)))

    def storages(self, places: Iterable[Place]) -> list[Storage]:
        """Return the storage of the tensors in `places`."""
        return [Storage(number, *place) for place in places for number in self.tenants[place]]

    def exclusive(self) -> Iterator[list[int]]:
        """Yield the tensors of each place that shares no byte with another place."""
        for place, tenants in self.tenants.items():
            if place not in self.shared:
                yield tenants

    def former(self, tensor: int) -> int:
        """Return the tensor before `tensor` in its place."""
        tenants = next(tenants for tenants in self.tenants.values() if tensor in tenants)
        return tenants[tenants.index(tensor) - 1]


def _shared(places: Iterable[Place], memory: str) -> Iterator[Place]:
    """Yield the places in `memory` that share bytes with another one."""
    own = sorted([place for place in places if place[0] == memory], key=lambda place: place[2])
    starts = sorted({partition for _, partition, *_ in own})
    # By band of partitions: the place that ends last of those that begin at or before this one.
    furthest: list[Place | None] = [None] * len(starts)
    for place in own:
        _, partition, byte, partitions, size = place
        for band in bands(starts, partition, partitions):
            other = furthest[band]
            if other is not None and byte < other[2] + other[4]:
                yield place
                yield other
            if other is None or byte + size > other[2] + other[4]:
                furthest[band] = place
