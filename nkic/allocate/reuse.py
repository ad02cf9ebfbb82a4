"""Reuse edges: a tensor that takes over bytes waits for the last accesses of their former owner.

In a device loop, the former owner may be a tensor of the previous iteration.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence

from nkic.allocate.liveness import Lifetime
from nkic.ir.dependence import DependenceGraph, Edge
from nkic.ir.overlap import Bands
from nkic.ir.tensors import Tensor
from nkic.machine.memory import Address


def reuse_edges(
    lives: Sequence[Lifetime], addresses: Mapping[int, Address], graph: DependenceGraph
) -> dict[int, tuple[Edge, ...]]:
    """Return the reuse edges for one memory; `lives` are in order of first access."""
    ownership = _Ownership(addresses, graph)
    tensor_counts = Counter(life.tensor.scope[-1] for life in lives if life.tensor.scope)
    by_loop: dict[int, list[Tensor]] = defaultdict(list)
    for tensor, _, _ in lives:
        ownership.take(tensor)
        if not tensor.scope:
            continue
        loop = tensor.scope[-1]
        by_loop[loop].append(tensor)
        if len(by_loop[loop]) == tensor_counts[loop]:
            for repeated in by_loop[loop]:
                ownership.take(repeated, 1)
    return ownership.edges


class _Ownership:
    """The current owner of all bytes, and the edges for each change of ownership."""

    def __init__(self, addresses: Mapping[int, Address], graph: DependenceGraph) -> None:
        self.addresses = addresses
        self.graph = graph
        self.bands = Bands(address.partition for address in addresses.values())
        self.owners = [_Owners() for _ in self.bands.starts]
        self.edges: dict[int, tuple[Edge, ...]] = {}

    def take(self, tensor: Tensor, distance: int = 0) -> None:
        """Assign `tensor` its bytes, in the loop's next iteration if `distance` is 1."""
        partition, low = self.addresses[tensor.number]
        number, high = tensor.number, low + tensor.bytes
        if len(self.owners) == 1:
            formers: Collection[int] = self.owners[0].take(low, high, number)
        else:
            bands = self.bands.of(partition, tensor.partitions)
            taken = [self.owners[band].take(low, high, number) for band in bands]
            formers = dict.fromkeys(former for owners in taken for former in owners)
        for former in formers:
            if former != number:
                self._wait(number, former, distance)

    def _wait(self, tensor: int, former: int, distance: int) -> None:
        all_edges, new = self.edges, tuple.__new__
        closers = self.graph.last_touches[former]
        if len(closers) == 1:  # most often, and without the call of a comprehension
            reuse: tuple[Edge, ...] = (new(Edge, (closers[0], "reuse", distance)),)
        else:
            reuse = tuple([new(Edge, (closer, "reuse", distance)) for closer in closers])
        for opener in self.graph.first_touches[tensor]:
            edges = all_edges.get(opener)
            all_edges[opener] = tuple(dict.fromkeys((*edges, *reuse))) if edges else reuse


class _Owners:
    """The bytes of a partition as ranges, each with its last owner."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ranges: list[tuple[int, int, int]] = []  # first byte, end, tensor

    def take(self, low: int, high: int, tensor: int) -> Collection[int]:
        """Assign [low, high) to `tensor`, and return the former owners of any of these bytes."""
        starts, ranges = self.starts, self.ranges
        first = bisect_left(starts, low)
        if first < len(starts) and starts[first] == low and ranges[first][1] == high:
            former = ranges[first][2]  # the usual case: the new owner takes over exactly one range
            ranges[first] = (low, high, tensor)
            return (former,)
        if first and ranges[first - 1][1] > low:
            first -= 1
        last = bisect_left(starts, high)
        taken = ranges[first:last]
        left = [(a, low, t) for a, _, t in taken[:1] if a < low]
        right = [(high, b, t) for _, b, t in taken[-1:] if b > high]
        ranges[first:last] = [*left, (low, high, tensor), *right]
        starts[first:last] = [r[0] for r in (*left, (low, high, tensor), *right)]
        return dict.fromkeys(t for _, _, t in taken)
