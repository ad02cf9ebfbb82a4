"""Decides which tiles leave SBUF, and when, in one walk through a body in program order.

This is Belady's rule for tiles of different sizes and costs: among the tiles not needed now, the
one leaves that frees the most bytes for the longest time, per byte moved. A tile that has changed
since it was last in HBM is moved twice, any other tile once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import NamedTuple

from nkic.allocate.place import Space
from nkic.ir.program import Instruction, Item
from nkic.ir.tensors import Tensor
from nkic.machine.engines import Engine
from nkic.machine.memory import Buffer
from nkic.spill.steps import Step

Declare = Callable[[Tensor, Buffer], Tensor]  # declares a new tensor like another one
MayRepeat = Callable[[Item, Tensor], bool]


class Away(NamedTuple):
    """A tile that left SBUF: how often it was stored, reloaded, and recomputed.

    An unchanged tile is reloaded from its original source; a recomputation needs no transfer.
    """

    tensor: Tensor
    stored: int
    loaded: int
    remade: int

    @property
    def bytes(self) -> int:
        """The bytes of one transfer."""
        return self.tensor.bytes * self.tensor.partitions

    @property
    def moved(self) -> int:
        """The bytes stored and loaded."""
        return (self.stored + self.loaded) * self.bytes


class Traffic(NamedTuple):
    """The cost of spilling: bytes stored and loaded, and the number of recomputations."""

    stored: int
    loaded: int
    remade: int

    @classmethod
    def of(cls, away: Iterable[Away]) -> Traffic:
        """Return the total of these tiles."""
        totals = [(a.stored * a.bytes, a.loaded * a.bytes, a.remade) for a in away]
        return cls(*map(sum, zip((0, 0, 0), *totals, strict=True)))


class Move(NamedTuple):
    """An inserted instruction: it copies `src` to `dst`.

    Without `src`, it repeats the item at `maker` into `dst`.
    """

    dst: Tensor
    src: Tensor | None
    maker: int = -1


@dataclass
class Plan:
    """The moves right before and after each item, by its index in the body.

    `names` maps the tensors that the item uses, by number, to their new tiles. `stuck` is the first
    step that needs more memory than is available.
    """

    before: dict[int, list[Move]] = field(default_factory=lambda: defaultdict(list))
    after: dict[int, list[Move]] = field(default_factory=lambda: defaultdict(list))
    names: dict[int, dict[int, Tensor]] = field(default_factory=dict)
    away: list[Away] = field(default_factory=list)
    stuck: Step | None = None


@dataclass
class _Tile:
    """A tile: the item indices of its uses, the next of them, and its current location."""

    tensor: Tensor
    size: int
    uses: list[int] = field(default_factory=list)
    next: int = 0  # index into the uses
    in_sbuf: Tensor | None = None  # the tile that holds it in SBUF
    in_hbm: Tensor | None = None  # the tensor that holds it in HBM
    maker: int = -1  # the item that recomputes or reloads it
    changed: bool = False  # since it was last in HBM, or computed
    written: int = -1  # the item that last wrote it
    started: bool = False
    stored: int = 0
    loaded: int = 0
    remade: int = 0

    @property
    def next_use(self) -> int:
        """The item index of its next use."""
        return self.uses[self.next]


@dataclass
class Walk:
    """A walk through a body; `capacity` in bytes per partition, `fixed` the immovable tensors."""

    steps: Sequence[Step]
    space: Space
    capacity: int
    fixed: frozenset[int]
    declare: Declare
    may_repeat: MayRepeat
    used: int = 0
    plan: Plan = field(default_factory=Plan)
    tiles: dict[int, _Tile] = field(default_factory=dict)
    # Candidates for eviction, by size and whether they must be stored: the furthest next use first.
    heaps: dict[tuple[int, bool], list[tuple[int, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )

    def __post_init__(self) -> None:
        for index, step in enumerate(self.steps):
            for tensor in step.tensors:
                tile = _Tile(tensor, self.space.size(tensor))
                self.tiles.setdefault(tensor.number, tile).uses.append(index)

    def run(self) -> Plan:
        """Walk the body, and return the plan."""
        for index, step in enumerate(self.steps):
            needed = [self.tiles[tensor.number] for tensor in step.tensors]
            missing = sum(tile.size for tile in needed if tile.in_sbuf is None)
            self._make_room(index, step, missing + step.inner)
            for tile in needed:
                self._reload(tile, index)
            moved = {
                h.tensor.number: h.in_sbuf
                for h in needed
                if h.in_sbuf and h.in_sbuf is not h.tensor
            }
            if moved:
                self.plan.names[index] = moved
            for tile in needed:
                self._record_use(tile, index, step)
        self.plan.away = list(self._away())
        return self.plan

    def _away(self) -> Iterator[Away]:
        for tile in self.tiles.values():
            if tile.stored or tile.loaded or tile.remade:
                yield Away(tile.tensor, tile.stored, tile.loaded, tile.remade)

    def _make_room(self, index: int, step: Step, missing: int) -> None:
        while (lacking := self.used + missing - self.capacity) > 0:
            tile = self._victim(index, lacking)
            if tile is None:
                self.plan.stuck = self.plan.stuck or step
                return
            self._evict(tile)

    def _victim(self, index: int, lacking: int) -> _Tile | None:
        """Return the tile to evict next, or None if all tiles are needed now or must stay."""
        best: tuple[float, int] | None = None
        for (size, changed), heap in self.heaps.items():
            while heap and not self._is_valid(heap[0], changed):
                heappop(heap)
            if not heap or -heap[0][0] <= index:
                continue
            distance = -heap[0][0] - index
            worth = distance * min(1.0, lacking / size) / (2 if changed else 1)
            if best is None or worth > best[0]:
                best = worth, heap[0][1]
        return self.tiles[best[1]] if best is not None else None

    def _is_valid(self, entry: tuple[int, int], changed: bool) -> bool:
        """Return whether a heap entry is still valid."""
        tile = self.tiles[entry[1]]
        return tile.in_sbuf is not None and tile.next_use == -entry[0] and tile.changed is changed

    def _evict(self, tile: _Tile) -> None:
        assert tile.in_sbuf is not None
        if tile.changed:
            tile.in_hbm = tile.in_hbm or self.declare(tile.tensor, Buffer.HBM)
            self.plan.after[tile.written].append(Move(tile.in_hbm, tile.in_sbuf))
            tile.stored += 1
            tile.changed = False
        tile.in_sbuf = None
        self.used -= tile.size

    def _reload(self, tile: _Tile, index: int) -> None:
        if tile.in_sbuf is not None:
            return
        self.used += tile.size
        if not tile.started:
            tile.started, tile.in_sbuf = True, tile.tensor
            return
        tile.in_sbuf = self.declare(tile.tensor, tile.tensor.buffer)
        if tile.in_hbm is not None or self._is_loaded(tile):
            tile.loaded += 1
        else:
            tile.remade += 1
        self.plan.before[index].append(Move(tile.in_sbuf, tile.in_hbm, tile.maker))

    def _is_loaded(self, tile: _Tile) -> bool:
        """Return whether its maker is a transfer."""
        item = self.steps[tile.maker].item
        return isinstance(item, Instruction) and item.engine is Engine.DMA

    def _record_use(self, tile: _Tile, index: int, step: Step) -> None:
        if tile.tensor.number in step.written or tile.written < 0:
            first = tile.written < 0 and tile.tensor.number in step.written
            repeatable = first and self.may_repeat(step.item, tile.tensor)
            tile.maker = index if repeatable else -1
            tile.changed = not repeatable
            tile.written = index
        tile.next += 1
        if tile.next == len(tile.uses):
            tile.in_sbuf = None
            self.used -= tile.size
        elif tile.tensor.number not in self.fixed:
            kind = (tile.size, tile.changed)
            heappush(self.heaps[kind], (-tile.next_use, tile.tensor.number))
