"""Packs by size: the largest tensor first, each at the lowest bytes that are free all its life.

Fits what program order leaves in pieces. A tensor that finds no room goes to the front, and all
begins again, some times. Tensors of at most 64 partitions may also lie side by side, two or four
of them over the same bytes: a compute engine reaches 64 partitions from 0 or 64 on, and 32 from
every multiple of 32 (Trainium/Inferentia2 architecture guide, data access).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from nkic.allocate.liveness import Lifetime
from nkic.allocate.place import Addresses, DoesNotFit, Ranges, Space, apart, fit, range_of
from nkic.ir.tensors import Tensor
from nkic.machine.memory import PARTITIONS, Address
from nkic.machine.tiles import start_partitions

PAIRS = 40_000_000  # of tensors, that are compared at most; a second or two
TRIES = 100


def pack(lives: Sequence[Lifetime], space: Space, movable: Collection[int] = ()) -> Addresses:
    """An address for each tensor, or DoesNotFit. Those of `movable` may begin at another
    partition than 0.
    """
    fixed, free, addresses = apart(lives)
    order = sorted(free, key=lambda one: (-space.size(one.tensor), one.first))
    tries = min(TRIES, PAIRS // max(1, len(lives) ** 2))
    if tries == 0 or _least(lives, space, movable) > space.capacity:
        raise DoesNotFit(order[0], [])
    while True:
        try:
            return addresses | _in_order(order, fixed, space, movable)
        except DoesNotFit as failure:
            tries -= 1
            if not tries or failure.life is order[0]:
                raise
            order.remove(failure.life)
            order.insert(0, failure.life)


def _least(lives: Sequence[Lifetime], space: Space, movable: Collection[int]) -> int:
    """Bytes per partition that are needed however well everything is packed."""
    change: Counter[int] = Counter()
    for life in lives:
        share = space.size(life.tensor) * _rows(life.tensor, movable)
        change[life.first] += share
        change[life.last + 1] -= share
    return max(accumulate(change[at] for at in sorted(change)), default=0) // PARTITIONS


def _rows(tensor: Tensor, movable: Collection[int]) -> int:
    """Partitions that no other tensor can have at the same bytes."""
    if tensor.fixed is not None:
        return tensor.partitions
    return PARTITIONS // len(start_partitions(tensor.partitions)) if movable else PARTITIONS


def _in_order(
    order: Sequence[Lifetime], fixed: Sequence[Lifetime], space: Space, movable: Collection[int]
) -> Addresses:
    placed = _Placed(len(order) + len(fixed))
    for life in fixed:
        partition = life.tensor.fixed.partition if life.tensor.fixed is not None else 0
        placed.add(life, partition, *range_of(life, space))
    addresses: Addresses = {}
    for life in order:
        found = _lowest(life, placed, space, movable)
        addresses[life.tensor.number] = found
        placed.add(life, found.partition, found.byte, found.byte + space.size(life.tensor))
    return addresses


def _lowest(life: Lifetime, placed: _Placed, space: Space, movable: Collection[int]) -> Address:
    """The lowest free bytes over any partitions where the tensor may begin: the last ones, as
    most tensors begin at 0.
    """
    best: Address | None = None
    for partition in reversed(_starts(life.tensor, movable)):
        beside = placed.beside(life, partition)
        byte = fit(beside, space.capacity, space.size(life.tensor), 0)
        if byte is not None and (best is None or byte < best.byte):
            best = Address(partition, byte)
    if best is None:
        raise DoesNotFit(life, [])
    return best


def _starts(tensor: Tensor, movable: Collection[int]) -> tuple[int, ...]:
    return start_partitions(tensor.partitions) if tensor.number in movable else (0,)


class _Placed:
    """What has a place: when it is in use, over which partitions and bytes."""

    def __init__(self, room: int) -> None:
        self.count = 0
        self.table: NDArray[np.int64] = np.zeros((6, room), np.int64)

    def add(self, life: Lifetime, partition: int, low: int, high: int) -> None:
        row = (life.first, life.last, partition, partition + life.tensor.partitions, low, high)
        self.table[:, self.count] = row
        self.count += 1

    def beside(self, life: Lifetime, partition: int) -> Ranges:
        """The bytes that `life` cannot have if it begins at `partition`, in order."""
        first, last, top, bottom, low, high = self.table[:, : self.count]
        meets = (first <= life.last) & (last >= life.first)
        meets &= (top < partition + life.tensor.partitions) & (bottom > partition)
        return sorted(zip(low[meets].tolist(), high[meets].tolist(), strict=True))
