"""Reuse edges: who takes over bytes waits for the last accesses of their former owner."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence

from nkic.allocate.liveness import Lifetime
from nkic.ir.dependence import DependenceGraph, Edge
from nkic.ir.overlap import Bands
from nkic.machine.memory import Address


def reuse_edges(
    lives: Sequence[Lifetime], addresses: Mapping[int, Address], graph: DependenceGraph
) -> dict[int, tuple[Edge, ...]]:
    """The edges for one memory; `lives` in order of first access."""
    bands = Bands(addresses[life.tensor.number].partition for life in lives)
    owners = [_Owners() for _ in bands.starts]
    edges: dict[int, dict[Edge, None]] = {}
    for life in lives:
        tensor = life.tensor
        partition, low = addresses[tensor.number]
        formers: dict[int, None] = {}
        for band in bands.of(partition, tensor.partitions):
            formers |= dict.fromkeys(owners[band].take(low, low + tensor.bytes, tensor.number))
        for former in formers:
            for opener in graph.first_touches[tensor.number]:
                waits = edges.setdefault(opener, {})
                for closer in graph.last_touches[former]:
                    waits[Edge(closer, "reuse")] = None
    return {number: tuple(found) for number, found in edges.items()}


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
