"""Reuse edges: who takes over bytes waits for the last accesses of their former owner. In a device
loop the former owner may be a tensor of the turn before.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from nkic.allocate.liveness import Lifetime
from nkic.ir.dependence import DependenceGraph, Edge
from nkic.ir.overlap import Bands
from nkic.ir.tensors import Tensor
from nkic.machine.memory import Address


def reuse_edges(
    lives: Sequence[Lifetime], addresses: Mapping[int, Address], graph: DependenceGraph
) -> dict[int, tuple[Edge, ...]]:
    """The edges for one memory; `lives` in order of first access."""
    hands = _Hands(addresses, graph)
    left = Counter(life.tensor.scope[-1] for life in lives if life.tensor.scope)
    inside: dict[int, list[Tensor]] = defaultdict(list)
    for tensor in (life.tensor for life in lives):
        hands.take(tensor)
        if not tensor.scope:
            continue
        loop = tensor.scope[-1]
        inside[loop].append(tensor)
        if len(inside[loop]) == left[loop]:
            for again in inside[loop]:
                hands.take(again, 1)
    return {number: tuple(found) for number, found in hands.edges.items()}


class _Hands:
    """Who has which bytes, and the edges where they change hands."""

    def __init__(self, addresses: Mapping[int, Address], graph: DependenceGraph) -> None:
        self.addresses = addresses
        self.graph = graph
        self.bands = Bands(address.partition for address in addresses.values())
        self.owners = [_Owners() for _ in self.bands.starts]
        self.edges: dict[int, dict[Edge, None]] = {}

    def take(self, tensor: Tensor, distance: int = 0) -> None:
        """Gives `tensor` its bytes, in a loop's next turn if `distance` is 1."""
        partition, low = self.addresses[tensor.number]
        formers: dict[int, None] = {}
        for band in self.bands.of(partition, tensor.partitions):
            taken = self.owners[band].take(low, low + tensor.bytes, tensor.number)
            formers |= dict.fromkeys(taken)
        for former in formers:
            if former != tensor.number:
                self._wait(tensor.number, former, distance)

    def _wait(self, tensor: int, former: int, distance: int) -> None:
        for opener in self.graph.first_touches[tensor]:
            waits = self.edges.setdefault(opener, {})
            for closer in self.graph.last_touches[former]:
                waits[Edge(closer, "reuse", distance)] = None


class _Owners:
    """Bytes of a partition as ranges, each with the tensor that had it last."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ranges: list[tuple[int, int, int]] = []  # first byte, end, tensor

    def take(self, low: int, high: int, tensor: int) -> list[int]:
        """Gives [low, high) to `tensor`; returns the former owners of any of its bytes."""
        first = bisect_right(self.starts, low) - 1
        if first < 0 or self.ranges[first][1] <= low:
            first += 1
        last = bisect_left(self.starts, high)
        taken = self.ranges[first:last]
        left = [(a, low, t) for a, _, t in taken[:1] if a < low]
        right = [(high, b, t) for _, b, t in taken[-1:] if b > high]
        self.ranges[first:last] = [*left, (low, high, tensor), *right]
        self.starts[first:last] = [r[0] for r in (*left, (low, high, tensor), *right)]
        return list(dict.fromkeys(t for _, _, t in taken))
