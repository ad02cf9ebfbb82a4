"""Packing by size: the largest tensor first, each at the lowest bytes free over its live range.

This fits programs for which program order leaves fragmented memory. A tensor that does not fit
moves to the front of the order and packing restarts, for a number of tries; then the order is size
times live range, and then live range alone. Tensors of at most 64 partitions may also lie side by
side, two or four over the same bytes: a compute engine reaches 64 partitions from partition 0 or
64, and 32 from every multiple of 32 (Trainium/Inferentia2 architecture guide, data access).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Sequence
from functools import partial
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from nkic.allocate.liveness import Lifetime
from nkic.allocate.place import Addresses, DoesNotFit, Ranges, Space, apart, fit, range_of
from nkic.ir.tensors import Tensor
from nkic.machine.memory import PARTITIONS, Address
from nkic.machine.tiles import start_partitions

# limit on compared pairs of tensors with overlapping live ranges; a second or two
MAX_PAIRS = 40_000_000
MAX_PLACEMENTS = 100_000  # limit on placements over all tries; similar time
MAX_TRIES = 150


def pack(lives: Sequence[Lifetime], space: Space, movable: Collection[int] = ()) -> Addresses:
    """Return an address for each tensor; those of `movable` may start at any partition.

    Raises DoesNotFit if every try fails.
    """
    fixed, free, addresses = apart(lives)
    orders = [sorted(free, key=partial(key, space)) for key in (_by_size, _by_area, _by_length)]
    failure = DoesNotFit(orders[0][0], [])
    if _least(lives, space, movable) > space.capacity:
        raise failure
    overlaps = _Overlaps(lives)
    tries = min(
        MAX_TRIES, MAX_PAIRS // max(1, overlaps.pairs), MAX_PLACEMENTS // max(1, len(lives))
    )
    for i, order in enumerate(orders):
        for _ in range((tries + i) // len(orders)):
            try:
                return addresses | _in_order(order, fixed, space, movable, overlaps)
            except DoesNotFit as raised:
                failure = raised
            order.remove(failure.life)
            order.insert(0, failure.life)
    raise failure


def _by_size(space: Space, life: Lifetime) -> tuple[int, int]:
    return -space.size(life.tensor), life.first


def _by_area(space: Space, life: Lifetime) -> tuple[int, int]:
    return -space.size(life.tensor) * (life.last - life.first + 1), life.first


def _by_length(space: Space, life: Lifetime) -> tuple[int, int]:
    return life.first - life.last, -space.size(life.tensor)


def _least(lives: Sequence[Lifetime], space: Space, movable: Collection[int]) -> int:
    """Return a lower bound of the bytes per partition that any packing needs."""
    change: Counter[int] = Counter()
    for life in lives:
        share = space.size(life.tensor) * _rows(life.tensor, movable)
        change[life.first] += share
        change[life.last + 1] -= share
    return max(accumulate(change[at] for at in sorted(change)), default=0) // PARTITIONS


def _rows(tensor: Tensor, movable: Collection[int]) -> int:
    """Return the number of partitions that no other tensor can share at the same bytes."""
    if tensor.fixed is not None:
        return tensor.partitions
    return PARTITIONS // len(start_partitions(tensor.partitions)) if movable else PARTITIONS


def _in_order(
    order: Sequence[Lifetime],
    fixed: Sequence[Lifetime],
    space: Space,
    movable: Collection[int],
    overlaps: _Overlaps,
) -> Addresses:
    placed = _Placed(overlaps)
    for life in fixed:
        partition = life.tensor.fixed.partition if life.tensor.fixed is not None else 0
        placed.add(life, partition, *range_of(life, space))
    addresses: Addresses = {}
    for life in order:
        address = _lowest(life, placed, space, movable)
        addresses[life.tensor.number] = address
        placed.add(life, address.partition, address.byte, address.byte + space.size(life.tensor))
    return addresses


def _lowest(life: Lifetime, placed: _Placed, space: Space, movable: Collection[int]) -> Address:
    """Return the lowest free bytes over any partitions at which the tensor may start.

    Among equals, the highest partition wins, as most tensors start at 0.
    """
    best: Address | None = None
    for partition in reversed(_starts(life.tensor, movable)):
        taken = placed.beside(life, partition)
        byte = fit(taken, space.capacity, space.size(life.tensor), 0)
        if byte is not None and (best is None or byte < best.byte):
            best = Address(partition, byte)
    if best is None:
        raise DoesNotFit(life, [])
    return best


def _starts(tensor: Tensor, movable: Collection[int]) -> tuple[int, ...]:
    return start_partitions(tensor.partitions) if tensor.number in movable else (0,)


class _Overlaps:
    """Pairs of tensors with overlapping live ranges.

    `lives` are in order of first access: a live range overlaps some of those that began earlier,
    and the following ones up to its own end.
    """

    def __init__(self, lives: Sequence[Lifetime]) -> None:
        self.index = {life.tensor.number: i for i, life in enumerate(lives)}
        firsts = [life.first for life in lives]
        self.ends = [bisect_right(firsts, life.last) for life in lives]
        self.before: list[NDArray[np.int64]] = []
        alive: list[int] = []
        for i, life in enumerate(lives):
            alive = [other for other in alive if lives[other].last >= life.first]
            self.before.append(np.array(alive, np.int64))
            alive.append(i)
        self.pairs = len(lives) + 2 * sum(map(len, self.before))

    def beside(self, number: int) -> NDArray[np.int64]:
        """Return the indices of the tensors that are live together with this one."""
        i = self.index[number]
        return np.concatenate([self.before[i], np.arange(i + 1, self.ends[i])])


class _Placed:
    """The partitions and bytes of each placed tensor; an unplaced tensor has no partitions."""

    def __init__(self, overlaps: _Overlaps) -> None:
        self.overlaps = overlaps
        self.table: NDArray[np.int64] = np.zeros((4, len(overlaps.index)), np.int64)

    def add(self, life: Lifetime, partition: int, low: int, high: int) -> None:
        row = (partition, partition + life.tensor.partitions, low, high)
        self.table[:, self.overlaps.index[life.tensor.number]] = row

    def beside(self, life: Lifetime, partition: int) -> Ranges:
        """Return the bytes that `life` cannot use if it starts at `partition`, in order."""
        boxes = self.table[:, self.overlaps.beside(life.tensor.number)]
        top, bottom, low, high = boxes
        overlaps = (top < partition + life.tensor.partitions) & (bottom > partition)
        return sorted(zip(low[overlaps].tolist(), high[overlaps].tolist(), strict=True))
