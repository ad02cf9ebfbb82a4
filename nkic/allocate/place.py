"""Choose addresses in one memory: bytes [0, capacity) of each partition.

Live ranges are placed in order of first access. The first strategy keeps slots by size and element
type; a freed slot stays unused while there are few free slots of its kind, so that neighbouring
iterations of an unrolled loop get different bytes (which amounts to multi-buffering), and bytes
keep their type, which speeds up the runner. If that does not fit, a ring around the whole memory is
tried, then lowest fit; pack.py has the strategies after those.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections import defaultdict, deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from heapq import heappop, heappush

from nkic.allocate.liveness import Lifetime
from nkic.ir.tensors import Tensor
from nkic.machine.memory import PSUM_BANK_BYTES, Address, Buffer
from nkic.machine.targets import Target

REST = 8  # free slots of a kind before the oldest is reused
SBUF_ALIGN = 64  # bytes
TIGHT_ALIGN = 32  # if nothing else fits: the alignment of published kernels


@dataclass(frozen=True)
class Space:
    """A memory to fill: `capacity` bytes per partition, starts at multiples of `align`."""

    buffer: Buffer
    capacity: int
    align: int

    def size(self, tensor: Tensor) -> int:
        """Return the bytes per partition that `tensor` takes, rounded up to the alignment."""
        return max(1, -(-tensor.bytes // self.align)) * self.align


def space_of(buffer: Buffer, target: Target) -> Space:
    """Return the space of SBUF or PSUM; in PSUM, starts are banks (migration guide, Beta 2)."""
    if buffer is Buffer.PSUM:
        return Space(buffer, target.psum_bytes, PSUM_BANK_BYTES)
    return Space(buffer, target.sbuf_usable, SBUF_ALIGN)


class DoesNotFit(Exception):
    """There is no room for `life` while the tensors of `live` are in use."""

    def __init__(self, life: Lifetime, live: list[Lifetime]) -> None:
        super().__init__(life.tensor.name)
        self.life = life
        self.live = live


Addresses = dict[int, Address]


def place(lives: Sequence[Lifetime], space: Space, rest: int = REST) -> Addresses:
    """Return an address for each tensor, with `rest` as in `REST`; raises DoesNotFit."""
    fixed, free, addresses = apart(lives)
    with suppress(DoesNotFit):
        return addresses | _slots(free, fixed, space, rest)
    with suppress(DoesNotFit):
        return addresses | _ring(free, fixed, space)
    return addresses | _lowest(free, fixed, space)


def apart(lives: Sequence[Lifetime]) -> tuple[list[Lifetime], list[Lifetime], Addresses]:
    """Split into tensors with and without fixed addresses, and return those addresses."""
    fixed = [life for life in lives if life.tensor.fixed is not None]
    free = [life for life in lives if life.tensor.fixed is None]
    addresses = {life.tensor.number: life.tensor.fixed for life in fixed}
    return fixed, free, {number: at for number, at in addresses.items() if at is not None}


def _slots(
    free: Sequence[Lifetime], fixed: Sequence[Lifetime], space: Space, rest: int
) -> Addresses:
    """Reuse the longest-free slot of a size and type, once `rest` are free or memory is full."""
    if fixed:
        return _ring(free, fixed, space)
    addresses: Addresses = {}
    resting: dict[tuple[int, str], deque[Address]] = defaultdict(deque)
    kinds: dict[tuple[int, str], tuple[int, deque[Address]]] = {}  # by bytes and type
    ends: list[tuple[int, int, Address, deque[Address]]] = []
    next_free = 0
    for order, (tensor, first, last) in enumerate(free):
        while ends and ends[0][0] < first:
            _, _, at, slots = heappop(ends)
            slots.append(at)
        kind = tensor.bytes, tensor.dtype.name
        if kind not in kinds:
            size = space.size(tensor)
            kinds[kind] = size, resting[size, kind[1]]
        size, slots = kinds[kind]
        fits = next_free + size <= space.capacity
        if slots and (len(slots) >= rest or not fits):
            at = slots.popleft()
        elif fits:
            at, next_free = Address(0, next_free), next_free + size
        else:
            raise DoesNotFit(free[order], [])
        addresses[tensor.number] = at
        heappush(ends, (last, order, at, slots))
    return addresses


def _ring(free: Sequence[Lifetime], fixed: Sequence[Lifetime], space: Space) -> Addresses:
    return _sweep(free, fixed, space, around=True)


def _lowest(free: Sequence[Lifetime], fixed: Sequence[Lifetime], space: Space) -> Addresses:
    return _sweep(free, fixed, space, around=False)


Ranges = list[tuple[int, int]]  # first byte and end, in order


def fit(taken: Ranges, capacity: int, size: int, after: int) -> int | None:
    """Return the lowest start at or above `after` with `size` free bytes, or None.

    The ranges of `taken` may only overlap if `after` is 0.
    """
    index = bisect_right(taken, (after, capacity))
    at = max(after, taken[index - 1][1]) if index else after
    for low, high in taken[index:]:
        if low - at >= size:
            return at
        at = max(at, high)
    return at if capacity - at >= size else None


def _sweep(
    free: Sequence[Lifetime], fixed: Sequence[Lifetime], space: Space, around: bool
) -> Addresses:
    """Place in program order; with `around`, continue the search where the last tensor ended."""
    addresses: Addresses = {}
    live: dict[int, tuple[int, int, Lifetime]] = {}  # by tensor: first byte, end, lifetime
    taken: Ranges = []
    ends: list[tuple[int, int]] = []
    after = 0
    for life in free:
        while ends and ends[0][0] < life.first:
            low, high, _ = live.pop(heappop(ends)[1])
            taken.remove((low, high))
        overlapping = _meeting(fixed, life)
        ranges = (
            _joined([*taken, *(range_of(f, space) for f in overlapping)]) if overlapping else taken
        )
        size = space.size(life.tensor)
        start = fit(ranges, space.capacity, size, after)
        if start is None and after:
            start = fit(ranges, space.capacity, size, 0)
        if start is None:
            raise DoesNotFit(
                life, [life_in_use for _, _, life_in_use in live.values()] + overlapping
            )
        number = life.tensor.number
        addresses[number] = Address(0, start)
        live[number] = (start, start + size, life)
        insort(taken, (start, start + size))
        heappush(ends, (life.last, number))
        after = start + size if around else 0
    return addresses


def _joined(ranges: Ranges) -> Ranges:
    """Merge overlapping ranges, as `fit` requires.

    Ranges of a live tensor and of a fixed one that is used later may overlap.
    """
    merged: Ranges = []
    for low, high in sorted(ranges):
        if merged and low < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return merged


def _meeting(fixed: Sequence[Lifetime], life: Lifetime) -> list[Lifetime]:
    return [f for f in fixed if f.meets(life)]


def range_of(fixed: Lifetime, space: Space) -> tuple[int, int]:
    """Return the bytes that a tensor at a fixed address takes, as first byte and end."""
    address = fixed.tensor.fixed or Address(0, 0)
    low = address.byte // space.align * space.align
    end = address.byte + fixed.tensor.bytes
    return low, -(-end // space.align) * space.align
