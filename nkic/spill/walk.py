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
        found = [(a.stored * a.bytes, a.loaded * a.bytes, a.remade) for a in away]
        return cls(*map(sum, zip((0, 0, 0), *found, strict=True)))


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
class _Home:
    """A tile: the item indices of its uses, the next of them, and its current location."""

    tensor: Tensor
    size: int
    uses: list[int] = field(default_factory=list)
    next: int = 0  # index into the uses
    now: Tensor | None = None  # the tile that holds it in SBUF
    kept: Tensor | None = None  # the tensor that holds it in HBM
    maker: int = -1  # the item that recomputes or reloads it
    changed: bool = False  # since it was last in HBM, or computed
    written: int = -1  # the item that last wrote it
    began: bool = False
    stored: int = 0
    loaded: int = 0
    remade: int = 0

    @property
    def due(self) -> int:
        """The item index of its next use."""
        return self.uses[self.next]


class Walk:
    """The walk through one body. `room` is in bytes per partition; `stay` are tensors that must
    stay.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        space: Space,
        room: int,
        stay: frozenset[int],
        declare: Declare,
        may_repeat: MayRepeat,
    ) -> None:
        self.steps = steps
        self.room = room
        self.stay = stay
        self.declare = declare
        self.may_repeat = may_repeat
        self.used = 0
        self.plan = Plan()
        self.homes: dict[int, _Home] = {}
        # Candidates for eviction, by size and whether they must be stored: the furthest next use
        # first.
        self.heaps: dict[tuple[int, bool], list[tuple[int, int]]] = defaultdict(list)
        for place, step in enumerate(steps):
            for tensor in step.tensors:
                home = self.homes.setdefault(tensor.number, _Home(tensor, space.size(tensor)))
                home.uses.append(place)

    def go(self) -> Plan:
        """Walk the body, and return the plan."""
        for place, step in enumerate(self.steps):
            needed = [self.homes[tensor.number] for tensor in step.tensors]
            missing = sum(home.size for home in needed if home.now is None)
            self._make_room(place, step, missing + step.inner)
            for home in needed:
                self._bring(home, place)
            moved = {h.tensor.number: h.now for h in needed if h.now and h.now is not h.tensor}
            if moved:
                self.plan.names[place] = moved
            for home in needed:
                self._used(home, place, step)
        self.plan.away = list(self._away())
        return self.plan

    def _away(self) -> Iterator[Away]:
        for home in self.homes.values():
            if home.stored or home.loaded or home.remade:
                yield Away(home.tensor, home.stored, home.loaded, home.remade)

    def _make_room(self, place: int, step: Step, missing: int) -> None:
        while (lacking := self.used + missing - self.room) > 0:
            home = self._best(place, lacking)
            if home is None:
                self.plan.stuck = self.plan.stuck or step
                return
            self._put_away(home)

    def _best(self, place: int, lacking: int) -> _Home | None:
        """Return the tile to evict next, or None if all tiles are needed now or must stay."""
        best: tuple[float, int] | None = None
        for (size, changed), heap in self.heaps.items():
            while heap and not self._holds(heap[0], changed):
                heappop(heap)
            if not heap or -heap[0][0] <= place:
                continue
            distance = -heap[0][0] - place
            worth = distance * min(1.0, lacking / size) / (2 if changed else 1)
            if best is None or worth > best[0]:
                best = worth, heap[0][1]
        return self.homes[best[1]] if best is not None else None

    def _holds(self, entry: tuple[int, int], changed: bool) -> bool:
        """Return whether a heap entry is still valid."""
        home = self.homes[entry[1]]
        return home.now is not None and home.due == -entry[0] and home.changed is changed

    def _put_away(self, home: _Home) -> None:
        assert home.now is not None
        if home.changed:
            home.kept = home.kept or self.declare(home.tensor, Buffer.HBM)
            self.plan.after[home.written].append(Move(home.kept, home.now))
            home.stored += 1
            home.changed = False
        home.now = None
        self.used -= home.size

    def _bring(self, home: _Home, place: int) -> None:
        if home.now is not None:
            return
        self.used += home.size
        if not home.began:
            home.began, home.now = True, home.tensor
            return
        home.now = self.declare(home.tensor, home.tensor.buffer)
        if home.kept is not None or self._is_loaded(home):
            home.loaded += 1
        else:
            home.remade += 1
        self.plan.before[place].append(Move(home.now, home.kept, home.maker))

    def _is_loaded(self, home: _Home) -> bool:
        """Return whether its maker is a transfer."""
        item = self.steps[home.maker].item
        return isinstance(item, Instruction) and item.engine is Engine.DMA

    def _used(self, home: _Home, place: int, step: Step) -> None:
        if home.tensor.number in step.written or home.written < 0:
            first = home.written < 0 and home.tensor.number in step.written
            again = first and self.may_repeat(step.item, home.tensor)
            home.maker = place if again else -1
            home.changed = not again
            home.written = place
        home.next += 1
        if home.next == len(home.uses):
            home.now = None
            self.used -= home.size
        elif home.tensor.number not in self.stay:
            kind = (home.size, home.changed)
            heappush(self.heaps[kind], (-home.due, home.tensor.number))
